package provider

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jobpoll/jobpoll"
)

// holder finds the object that has the word as a value.
func holder(v any, word string) map[string]any {
	if list, ok := v.([]any); ok && len(list) > 0 {
		return holder(list[0], word)
	}
	object, ok := v.(map[string]any)
	if !ok {
		return nil
	}
	for _, value := range object {
		if value == word {
			return object
		}
	}
	for _, value := range object {
		if found := holder(value, word); found != nil {
			return found
		}
	}
	return nil
}

// A field beside the word may be of any type: no look at a pending job is lost
// over it, and none ends the job.
func TestAFieldBesideTheWordLosesNoLook(t *testing.T) {
	anything := []any{nil, true, false, 5, -1.5, "", "5", []any{}, []any{1}, map[string]any{}, map[string]any{"url": 7}}
	for _, name := range familyNames() {
		f := families[name]
		word := f.stated.Pending.Want.RawStatus
		if word == "" {
			continue // it has none
		}
		var pending, done any
		require.NoError(t, json.Unmarshal([]byte(strings.ReplaceAll(f.stated.Pending.Body, "{id}", "x")), &pending))
		require.NoError(t, json.Unmarshal([]byte(f.body), &done))
		at, other := holder(pending, word), holder(done, f.stated.Succeeded.Want.RawStatus)
		require.NotNil(t, at, name)
		require.NotNil(t, other, name)
		for _, field := range slices.Sorted(maps.Keys(other)) {
			if at[field] == word || field == "base_resp" { // base_resp has the code of the envelope
				continue
			}
			if name == "kling3" && field == "id" { // it says whose part of the list it is
				continue
			}
			before, had := at[field]
			for _, value := range anything {
				at[field] = value
				body, err := json.Marshal(pending)
				require.NoError(t, err)
				a := cannedAdapter(t, name, &canned{f.stated.Pending.Status, nil, body})
				rep, err := a.Check(t.Context(), jobpoll.Job{Route: "r", ID: "x", Ref: f.ref})
				require.NoError(t, err, "%s: %s", name, body)
				require.Equal(t, f.stated.Pending.Want.State, rep.State, "%s: %s", name, body)
			}
			if at[field] = before; !had {
				delete(at, field)
			}
		}
	}
}

// An id that is a number is an id: the job is bought.
func TestAnIDThatIsANumberIsKeptByEachFamily(t *testing.T) {
	for name, body := range map[string]string{
		"runway": `{"id":123}`, "luma": `{"id":123,"state":7}`, "openai": `{"id":123,"status":"queued"}`, "ark": `{"id":123}`,
		"kling": `{"code":0,"data":{"task_id":123}}`, "minimax": `{"task_id":123,"base_resp":{"status_code":0}}`, "minimax2": `{"task_id":123}`,
		"dashscope": `{"output":{"task_id":123,"task_status":"PENDING"}}`, "wavespeed": `{"code":200,"data":{"id":123,"status":7}}`, "xai": `{"request_id":123}`,
	} {
		job, _, err := cannedAdapter(t, name, &canned{200, nil, []byte(body)}).Submit(t.Context(), Order{Model: "own/app"})
		require.NoError(t, err, name)
		require.Equal(t, "123", job.ID, name)
	}
}
