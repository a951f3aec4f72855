package jobpoll

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"
)

// The text of a Key is "route/id" with the slashes of the route escaped, so that the
// first slash is the one between them. It is what package json has for the keys of a
// map; a Key elsewhere is the object that it always was.
var (
	escapeRoute   = strings.NewReplacer("%", "%25", "/", "%2F")
	unescapeRoute = strings.NewReplacer("%25", "%", "%2F", "/", "%2f", "/")
)

// ParseKey reads the text of a Key, as MarshalText writes it: a route, a slash, an id
// that may hold slashes of its own. In the route "%2F" stands for a slash and "%25"
// for a percent sign. For a route that holds neither that is what String gives. An
// error says that the text has no slash, an empty route or id, or is not valid UTF-8.
func ParseKey(text string) (Key, error) {
	k, err := cutKey(text)
	if err == nil && (k.Route == "" || k.ID == "") {
		err = fmt.Errorf("jobpoll: the key %q has no route or no id", clip(text, 64))
	}
	if err != nil {
		return Key{}, err
	}
	return k, nil
}

func cutKey(text string) (Key, error) {
	if !utf8.ValidString(text) {
		return Key{}, fmt.Errorf("jobpoll: the key %q is not valid UTF-8", clip(text, 64))
	}
	route, id, ok := strings.Cut(text, "/")
	if !ok {
		return Key{}, fmt.Errorf(`jobpoll: the key %q has no slash: expected "route/id"`, clip(text, 64))
	}
	return Key{Route: unescapeRoute.Replace(route), ID: id}, nil
}

// MarshalText writes the Key as ParseKey reads it, so that a map by Key can be
// written by package json. It never fails.
func (k Key) MarshalText() ([]byte, error) {
	return []byte(escapeRoute.Replace(k.Route) + "/" + k.ID), nil
}

// UnmarshalText reads what MarshalText wrote. Unlike ParseKey it takes an empty route
// and an empty id, as those of the zero Key.
func (k *Key) UnmarshalText(b []byte) error {
	read, err := cutKey(string(b))
	if err == nil {
		*k = read
	}
	return err
}

// keyFields is a Key as package json sees a struct.
type keyFields Key

// MarshalJSON writes the object {"route": …, "id": …}.
func (k Key) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false) // who writes the whole decides
	err := e.Encode(keyFields(k))
	return b.Bytes(), err
}

// UnmarshalJSON reads the object that MarshalJSON writes, or the text that MarshalText
// does: package json asks it for the keys of a map too.
func (k *Key) UnmarshalJSON(b []byte) error {
	if len(b) > 0 && b[0] == '"' {
		var text string
		if err := json.Unmarshal(b, &text); err != nil {
			return err
		}
		return k.UnmarshalText([]byte(text))
	}
	return json.Unmarshal(b, (*keyFields)(k))
}
