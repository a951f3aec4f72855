package jobpoll

import "encoding/json"

// What encoding/json makes of an error is {}. So the events of Hooks that hold one
// are written with its text, as Excerpt gives it, and without the field where there
// is none. All else is as the fields have it. What was written with an error cannot
// be read back into the event: an error is not made of a text.

// MarshalJSON writes the event with Err as text.
func (e LookEvent) MarshalJSON() ([]byte, error) {
	type fields LookEvent
	return json.Marshal(struct {
		fields
		Err string `json:",omitempty"`
	}{fields(e), errorText(e.Err)})
}

// MarshalJSON writes the event with Err as text.
func (e SubmitEvent) MarshalJSON() ([]byte, error) {
	type fields SubmitEvent
	return json.Marshal(struct {
		fields
		Err string `json:",omitempty"`
	}{fields(e), errorText(e.Err)})
}

// MarshalJSON writes the event with Err as text.
func (e StoreEvent) MarshalJSON() ([]byte, error) {
	type fields StoreEvent
	return json.Marshal(struct {
		fields
		Err string `json:",omitempty"`
	}{fields(e), errorText(e.Err)})
}

// MarshalJSON writes the event with Err as text.
func (e DeliverEvent) MarshalJSON() ([]byte, error) {
	type fields DeliverEvent
	return json.Marshal(struct {
		fields
		Err string `json:",omitempty"`
	}{fields(e), errorText(e.Err)})
}

// MarshalJSON writes the event with Value and Stack as text: a Value may be
// anything, also what JSON cannot hold.
func (e PanicEvent) MarshalJSON() ([]byte, error) {
	type fields PanicEvent
	return json.Marshal(struct {
		fields
		Value string `json:",omitempty"`
		Stack string `json:",omitempty"`
	}{fields(e), e.text(), string(e.Stack)})
}
