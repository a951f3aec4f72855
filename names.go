package jobpoll

// enumName gives the name of an enum value; values out of range read "unknown".
func enumName(names []string, v int) string {
	if v < 0 || v >= len(names) {
		return "unknown"
	}
	return names[v]
}

// enumValue finds a name; a name that is not in the table gives the value
// that stands for unknown, so that data of a newer version can be read.
func enumValue(names []string, name string, unknown int) int {
	for i, n := range names {
		if n == name {
			return i
		}
	}
	return unknown
}
