package provider

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Profile makes the name of a Job.Profile of a model and the settings that change
// how long a job takes: the length of the video, its size, the quality. The same
// settings give the same name, in whatever order and whether a number is an int, a
// float or a text: "veo-3 duration=8 resolution=720p". Settings that are nil, false or
// empty count as not set. It is for an Order's Model and some of its Input; leave
// out what is different for each job, as prompts and seeds are.
func Profile(model string, settings map[string]any) string {
	var b strings.Builder
	b.WriteString(strings.TrimSpace(model))
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		if value := setting(settings[name]); value != "" {
			fmt.Fprintf(&b, " %s=%s", name, value)
		}
	}
	return b.String()
}

// setting is a value as a text that does not depend on its type.
func setting(v any) string {
	raw, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	var t Text
	_ = t.UnmarshalJSON(raw) // it gives no error
	if n, ok := t.number(); ok {
		raw, _ = json.Marshal(n) // it is finite
		return string(raw)
	}
	return strings.Join(strings.Fields(string(t)), "_")
}
