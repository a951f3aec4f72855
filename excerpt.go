package jobpoll

// Excerpt makes text of others, such as the begin of a body, fit for an error or
// a log: one line of at most 200 runes, valid UTF-8 without control characters,
// and without what looks like a secret. FromResponse shows bodies by the same
// rules; an adapter that explains an answer by itself uses it too. At most the
// first 8 KiB are looked at. Only "an HTML page" is said of one.
func Excerpt(text string) string { return excerptText(text) }
