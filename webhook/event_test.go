package webhook_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jobpoll/jobpoll"
	"github.com/jobpoll/jobpoll/webhook"
)

func TestAnEventSaysInALogAndInJSONWhatWasWrong(t *testing.T) {
	good := webhook.Event{
		Route: "r", Result: webhook.ResultTaken, Key: jobpoll.Key{Route: "r", ID: "1"}, ClientKey: "c", EventID: "e",
		Trust: jobpoll.TrustAuthoritative, Bytes: 7, Took: time.Second,
	}
	bad := webhook.Event{Route: "r", Result: webhook.ResultPanicked, Err: errors.New("a panic:\nboom")}
	for _, c := range []struct {
		e          webhook.Event
		line, json string
	}{
		{good, `e.route=r e.result=` + good.Result.String() + ` e.id=1 e.client_key=c e.event_id=e e.trust=authoritative e.bytes=7 e.took=1s`,
			`{"Route":"r","Result":"` + good.Result.String() + `","Key":{"route":"r","id":"1"},"ClientKey":"c","EventID":"e","Trust":"authoritative","Bytes":7,"Took":1000000000}`},
		{bad, `e.route=r e.result=panicked e.error="a panic: boom" e.bytes=0 e.took=0s`,
			`{"Route":"r","Result":"panicked","Key":{"route":"","id":""},"ClientKey":"","EventID":"","Trust":"hint","Bytes":0,"Took":0,"Err":"a panic: boom"}`},
	} {
		var log bytes.Buffer
		slog.New(slog.NewTextHandler(&log, nil)).Info("m", "e", c.e)
		require.Contains(t, log.String(), "msg=m "+c.line+"\n")
		b, err := json.Marshal(c.e)
		require.NoError(t, err)
		require.JSONEq(t, c.json, string(b))
	}
}
