package jobpoll

import (
	"bytes"
	"encoding/json"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

func TestTheTextOfAKeyIsReadAsTheSameKey(t *testing.T) {
	for _, c := range []struct {
		key  Key
		text string
	}{
		{Key{Route: "fal", ID: "abc"}, "fal/abc"},
		{Key{Route: "veo", ID: "models/veo-3/operations/o%2F1"}, "veo/models/veo-3/operations/o%2F1"},
		{Key{Route: "a/b", ID: "c"}, "a%2Fb/c"},
		{Key{Route: "a", ID: "b/c"}, "a/b/c"},
		{Key{Route: "100%", ID: "c"}, "100%25/c"},
		{Key{Route: "%2F%25", ID: "/"}, "%252F%2525//"},
		{Key{Route: "é <&>", ID: "\u2028"}, "é <&>/\u2028"},
	} {
		b, err := c.key.MarshalText()
		require.NoError(t, err)
		require.Equal(t, c.text, string(b))
		back, err := ParseKey(c.text)
		require.NoError(t, err)
		require.Equal(t, c.key, back)
	}
	for text, want := range map[string]Key{"50%/x": {Route: "50%", ID: "x"}, "a%2fb/c": {Route: "a/b", ID: "c"}, "%2/x": {Route: "%2", ID: "x"}} {
		k, err := ParseKey(text)
		require.NoError(t, err)
		require.Equal(t, want, k)
	}
}

func TestATextThatIsNoKeyIsRefused(t *testing.T) {
	for text, want := range map[string]string{
		"":         "no slash",
		"fal":      "no slash",
		"a%2Fb":    "no slash",
		"/abc":     "no route or no id",
		"fal/":     "no route or no id",
		"fal/\xff": "not valid UTF-8",
	} {
		k, err := ParseKey(text)
		require.ErrorContains(t, err, want)
		require.ErrorContains(t, err, "jobpoll: ")
		require.Zero(t, k)
	}
}

func TestAMapByKeyCanBeWrittenAndAKeyIsStillAnObject(t *testing.T) {
	jobs := map[Key]int{{Route: "a/b", ID: "c"}: 1, {Route: "a", ID: "b/c"}: 2, {}: 3}
	b, err := json.Marshal(jobs)
	require.NoError(t, err)
	require.JSONEq(t, `{"a%2Fb/c":1,"a/b/c":2,"/":3}`, string(b))
	var back map[Key]int
	require.NoError(t, json.Unmarshal(b, &back))
	require.Equal(t, jobs, back)
	require.Error(t, json.Unmarshal([]byte(`{"a":1}`), &back))

	k := Key{Route: "<r>", ID: "i"}
	b, err = json.Marshal(k)
	require.NoError(t, err)
	plain, err := json.Marshal(keyFields(k))
	require.NoError(t, err)
	require.Equal(t, string(plain), string(b))
	var raw bytes.Buffer
	e := json.NewEncoder(&raw)
	e.SetEscapeHTML(false)
	require.NoError(t, e.Encode(k))
	require.Equal(t, `{"route":"<r>","id":"i"}`+"\n", raw.String())
	for _, text := range []string{string(b), raw.String(), `{"ROUTE":"<r>","id":"i","more":1}`} {
		var got Key
		require.NoError(t, json.Unmarshal([]byte(text), &got))
		require.Equal(t, k, got)
	}
	got := k
	require.NoError(t, json.Unmarshal([]byte(`null`), &got))
	require.Equal(t, k, got)
	require.NoError(t, json.Unmarshal([]byte(`"a%2Fb/c"`), &got))
	require.Equal(t, Key{Route: "a/b", ID: "c"}, got)
	for _, text := range []string{`"a"`, `7`, `["a","b"]`} {
		require.Error(t, json.Unmarshal([]byte(text), &got), text)
	}
}

// Whatever is in a route and an id, the text and the object give them back, and no
// other Key has that text. What is read of any text has a text that is read so too.
func FuzzKeyText(f *testing.F) {
	for _, s := range []string{"", "fal", "a/b", "%", "%2F", "%25", "%252F", "%2", "é", "\xff", "<"} {
		f.Add(s, "abc")
		f.Add("r", s)
	}
	f.Fuzz(func(t *testing.T, route, id string) {
		k := Key{Route: route, ID: id}
		valid := utf8.ValidString(route) && utf8.ValidString(id)
		b, err := k.MarshalText()
		require.NoError(t, err)
		var back Key
		err = back.UnmarshalText(b)
		require.Equal(t, valid, err == nil)
		parsed, parseErr := ParseKey(string(b))
		require.Equal(t, valid && route != "" && id != "", parseErr == nil)
		if valid {
			require.Equal(t, k, back)
			object, err := json.Marshal(k)
			require.NoError(t, err)
			var same Key
			require.NoError(t, json.Unmarshal(object, &same))
			require.Equal(t, k, same)
			byKey, err := json.Marshal(map[Key]bool{k: true})
			require.NoError(t, err)
			var read map[Key]bool
			require.NoError(t, json.Unmarshal(byKey, &read))
			require.Equal(t, map[Key]bool{k: true}, read)
		}
		if parseErr == nil {
			require.Equal(t, k, parsed)
		}
		if any, err := ParseKey(route + id); err == nil {
			b, _ := any.MarshalText()
			again, err := ParseKey(string(b))
			require.NoError(t, err)
			require.Equal(t, any, again)
		}
	})
}
