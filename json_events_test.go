package jobpoll

import (
	"encoding/json"
	"errors"
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestAnEventIsWrittenWithItsError(t *testing.T) {
	err := &CheckError{Kind: ErrorTransient, Status: 502, Err: errors.New("api_key=0123456789ab\nbad gateway")}
	const text = `"jobpoll: transient (HTTP 502): api_key=… bad gateway"`
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	key := Key{Route: "r", ID: "1"}
	for _, c := range []struct {
		event any
		want  string
	}{
		{LookEvent{Job: Job{Route: "r", ID: "1"}, Kind: ErrorTransient, Err: err, Took: time.Second, At: at, Polls: 2},
			`{"Job":{"route":"r","id":"1"},"State":"unknown","RawStatus":"","Kind":"transient","Took":1000000000,"Late":0,"At":"2026-01-02T03:04:05Z","Polls":2,"Err":` + text + `}`},
		{LookEvent{Job: Job{Route: "r", ID: "1"}, State: StateRunning, At: at},
			`{"Job":{"route":"r","id":"1"},"State":"running","RawStatus":"","Kind":"none","Took":0,"Late":0,"At":"2026-01-02T03:04:05Z","Polls":0}`},
		{SubmitEvent{Job: Job{Route: "r", ClientKey: "c"}, State: SubmissionInDoubt, Err: err, At: at},
			`{"Job":{"route":"r","id":"","client_key":"c"},"State":"in doubt","At":"2026-01-02T03:04:05Z","Err":` + text + `}`},
		{StoreEvent{Op: "Put", Err: err}, `{"Op":"Put","Err":` + text + `}`},
		{DeliverEvent{Key: key, ClientKey: "c", Reason: ReasonFailed, Attempt: 2, Err: err}, `{"Key":{"route":"r","id":"1"},"ClientKey":"c","Reason":"failed","Attempt":2,"Err":` + text + `}`},
		{PanicEvent{Key: key, Where: "Check", Value: func() {}, Stack: nil}, ""},
		{PanicEvent{Key: key, Where: "Check", Value: errors.New("boom"), Stack: []byte("goroutine 1")},
			`{"Key":{"route":"r","id":"1"},"Where":"Check","Value":"boom","Stack":"goroutine 1"}`},
	} {
		b, err := json.Marshal(c.event)
		require.NoError(t, err)
		if c.want != "" {
			require.JSONEq(t, c.want, string(b))
		}
	}
}

// An event without an error can be read back; none is written with {} for an error.
func TestEveryEventCanBeWrittenAndRead(t *testing.T) {
	for _, f := range reflect.VisibleFields(reflect.TypeFor[Hooks]()) {
		v := reflect.New(f.Type.In(0)).Elem()
		filled(v, "")
		b, err := json.Marshal(v.Interface())
		require.NoError(t, err, f.Name)
		require.NotContains(t, string(b), "{}", f.Name)
		require.NotContains(t, string(b), "hidden-secret", f.Name)
		if e := v.FieldByName("Err"); e.IsValid() && f.Name != "StoreChanged" { // which has a Message
			require.Contains(t, string(b), "refused", f.Name)
			e.SetZero()
		}
		if f.Name == "Panicked" || f.Name == "StoreChanged" {
			continue // a Value may be anything, and Store.Err is not written
		}
		b, err = json.Marshal(v.Interface())
		require.NoError(t, err)
		back := reflect.New(v.Type())
		require.NoError(t, json.Unmarshal(b, back.Interface()), f.Name)
		require.Equal(t, v.Interface(), back.Elem().Interface(), f.Name)
	}
}

func TestAnErrorThatPanicsIsWrittenAllTheSame(t *testing.T) {
	b, err := json.Marshal(StoreEvent{Op: "Get", Err: new(panickingError)})
	require.NoError(t, err)
	require.JSONEq(t, `{"Op":"Get","Err":"an error whose Error method panics"}`, string(b))
}
