package jobpoll

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"syscall"
	"testing"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

type explodes struct{}

func (explodes) Error() string { panic("Error") }
func (explodes) As(any) bool   { panic("As") }

func TestWhatTheReturnOfASendMeans(t *testing.T) {
	refusedBy := func(k ErrorKind, status int) error { return &CheckError{Kind: k, Status: status} }
	dial := &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
	for name, c := range map[string]struct {
		id   string
		err  error
		want sendVerdict
	}{
		"an id":                        {"x", nil, sendTaken},
		"no id":                        {"", nil, sendDoubtful},
		"an id that is no text":        {"\xff", nil, sendDoubtful},
		"a plain error":                {"", errors.New("x"), sendDoubtful},
		"a plain error with an id":     {"x", errors.New("x"), sendDoubtful},
		"the end of a context":         {"", context.Canceled, sendDoubtful},
		"a deadline":                   {"", context.DeadlineExceeded, sendDoubtful},
		"a cut answer":                 {"", io.ErrUnexpectedEOF, sendDoubtful},
		"a reset":                      {"", &net.OpError{Op: "read", Err: syscall.ECONNRESET}, sendDoubtful},
		"a dial error":                 {"", &url.Error{Op: "Post", URL: "u", Err: dial}, sendUnsent},
		"a dial error of a GET":        {"", &url.Error{Op: "Get", URL: "u", Err: dial}, sendDoubtful},
		"a name that is none":          {"", &net.DNSError{Err: "no such host"}, sendUnsent},
		"a refused connection":         {"", syscall.ECONNREFUSED, sendUnsent},
		"a proxy that is away":         {"", &net.OpError{Op: "proxyconnect", Err: io.EOF}, sendUnsent},
		"said to be unsent":            {"", fmt.Errorf("x: %w", ErrNotSent), sendUnsent},
		"said to be ambiguous":         {"", fmt.Errorf("%w: %w", ErrAmbiguous, refusedBy(ErrorInvalid, 400)), sendDoubtful},
		"ambiguous and unsent":         {"", errors.Join(ErrNotSent, ErrAmbiguous), sendDoubtful},
		"a repeat":                     {"", fmt.Errorf("%w: %w", ErrAlreadySubmitted, refusedBy(ErrorInvalid, 422)), sendExists},
		"a repeat with its id":         {"x", ErrAlreadySubmitted, sendTaken},
		"429":                          {"", refusedBy(ErrorRateLimited, 429), sendRefused},
		"quota":                        {"", refusedBy(ErrorQuota, 429), sendRefused},
		"concurrency":                  {"", refusedBy(ErrorConcurrency, 403), sendRefused},
		"401":                          {"", refusedBy(ErrorAuth, 401), sendRefused},
		"422":                          {"", refusedBy(ErrorInvalid, 422), sendRefused},
		"403":                          {"", refusedBy(ErrorPolicy, 403), sendRefused},
		"404":                          {"", refusedBy(ErrorNoSuchJob, 404), sendRefused},
		"a 404 of who knows what":      {"", refusedBy(ErrorNoSuchJob, 0), sendDoubtful},
		"425":                          {"", refusedBy(ErrorTransient, 425), sendRefused},
		"408":                          {"", refusedBy(ErrorTransient, 408), sendDoubtful},
		"409":                          {"", refusedBy(ErrorTransient, 409), sendDoubtful},
		"500":                          {"", refusedBy(ErrorTransient, 500), sendDoubtful},
		"503":                          {"", refusedBy(ErrorTransient, 503), sendDoubtful},
		"a kind of a newer version":    {"", refusedBy(ErrorUnknown, 0), sendDoubtful},
		"permanent":                    {"", backoff.Permanent(errors.New("x")), sendDoubtful},
		"an error whose methods panic": {"", explodes{}, sendDoubtful},
		"a nil CheckError":             {"", (*CheckError)(nil), sendDoubtful},
	} {
		assert.Equal(t, c.want, judgeSend(c.id, c.err), name)
	}
}

func TestMeaningsAndStatesAreWrittenAndReadByName(t *testing.T) {
	for m := SubmitAmbiguous; m <= SubmitAbsent; m++ {
		b, err := json.Marshal(m)
		require.NoError(t, err)
		back := SubmitAbsent
		require.NoError(t, json.Unmarshal(b, &back))
		assert.Equal(t, m, back)
		e := &SubmitError{Meaning: m}
		assert.Equal(t, e.Safe(), errors.Is(e, ErrNotSent))
		assert.False(t, e.Safe() && errors.Is(e, ErrAmbiguous))
	}
	for s := SubmissionUnknown; s <= SubmissionTaken; s++ {
		b, err := json.Marshal(s)
		require.NoError(t, err)
		back := SubmissionTaken
		require.NoError(t, json.Unmarshal(b, &back))
		assert.Equal(t, s, back)
	}
	m, s := SubmitRefused, SubmissionTaken
	require.NoError(t, json.Unmarshal([]byte(`"of a newer version"`), &m))
	require.NoError(t, json.Unmarshal([]byte(`"of a newer version"`), &s))
	assert.Equal(t, SubmitAmbiguous, m, "the safe one")
	assert.Equal(t, SubmissionUnknown, s)
}

// Whatever look-ups say, in whatever order: absent is never concluded within the
// grace, while Send is out, from anything but a row of absents, or against what
// was seen; and it ends.
func FuzzADoubtIsClearedRightly(f *testing.F) {
	f.Add([]byte{2, 2, 2, 2, 2, 2, 2}, false, uint8(0))
	f.Add([]byte{0, 2, 0, 3, 2, 2, 2, 0, 0}, true, uint8(3))
	f.Add([]byte{0, 255}, false, uint8(0))
	f.Fuzz(func(t *testing.T, answers []byte, seen bool, out uint8) {
		rules := StopRules{}.withDefaults(0)
		const start = Stamp(1_000_000_000_000)
		d := doubt{Since: start, Seen: seen}
		now, absents := start, 0
		for i := 0; ; i++ {
			require.Less(t, i, 2000, "it never ends")
			b := byte(0)
			if i < len(answers) {
				b = answers[i]
			}
			failed, state := b%4 == 3, FindingState(b%4)
			if failed {
				state = FindingUnknown
			}
			if b == 255 {
				failed, state = false, FindingImpossible
			}
			open := i < int(out)
			if state == FindingAbsent {
				absents++
			} else if !failed {
				absents = 0
			}
			end, wait := d.hear(lookedUp{state: state, failed: failed, hint: time.Duration(b) * time.Second / 8, begun: now, over: now, open: open}, &rules)
			switch end {
			case doubtFound:
				require.Equal(t, FindingPresent, state)
				return
			case doubtAbsent:
				require.False(t, seen || open || failed)
				require.GreaterOrEqual(t, now.Sub(start), rules.MissingGrace)
				require.GreaterOrEqual(t, absents, rules.MissingLooks)
				return
			case doubtGivenUp:
				require.True(t, state == FindingImpossible || now.Sub(start) >= rules.MissingGrace || int(d.Errors) >= rules.MaxErrors)
				return
			}
			require.NotEqual(t, FindingImpossible, state)
			require.GreaterOrEqual(t, wait, time.Duration(b)*time.Second/8)
			require.Positive(t, wait)
			now = now.Add(wait)
		}
	})
}
