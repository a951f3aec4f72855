package jobpoll_test

import (
	"bytes"
	"log/slog"
	"testing"
	"time"

	"github.com/jobpoll/jobpoll"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// One line of the log tells which order it was, and why it failed.
func TestTheLogTellsOfAnEndWhatOneLooksForItBy(t *testing.T) {
	var lines bytes.Buffer
	r := rigOf(t, func(_ *rig, cfg *jobpoll.Config) { cfg.Logger = slog.New(slog.NewTextHandler(&lines, nil)) })
	for id, script := range map[string]string{"good": `succeeded`, "bad": `failed filtered "a face was seen"`} {
		r.prov.Add(id, script)
		require.NoError(t, r.Watch(t.Context(), jobpoll.Job{Route: "r", ID: id, ClientKey: "order-" + id, Profile: "wan 720p"}))
	}
	r.prov.Add("bare", `succeeded`)
	require.NoError(t, r.Watch(t.Context(), jobpoll.Job{Route: "r", ID: "bare"}))
	r.Clock.Advance(time.Minute)
	text := lines.String()
	assert.Regexp(t, `level=INFO msg="watch ended" job=r/good client_key=order-good profile="wan 720p" reason=succeeded state=succeeded polls=1\n`, text)
	assert.Regexp(t, `level=WARN msg="watch ended" job=r/bad client_key=order-bad profile="wan 720p" reason=failed state=failed polls=1 error=".*filtered.*a face was seen.*"\n`, text)
	assert.Regexp(t, `msg="watch ended" job=r/bare reason=succeeded`, text)
}
