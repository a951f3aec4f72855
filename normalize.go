package jobpoll

import (
	"bytes"
	"encoding/json"
	"time"
	"unicode/utf8"
)

// normalize bounds what a Checker returned. No answer, however wild, may harm
// the engine or the store.
func normalize(r *Report) {
	if r.State > StateExpired {
		r.State = StateUnknown
	}
	r.RawStatus = clip(r.RawStatus, maxWord)
	r.Progress = clampProgress(r.Progress)
	r.QueuePosition = max(r.QueuePosition, 0)
	r.Remaining = min(max(r.Remaining, 0), MaxRetryAfter)
	r.Hint.RetryAfter = r.Hint.wait()
	if r.Hint.Scope > ScopeAccount {
		r.Hint.Scope = ScopeDefault
	}
	for _, t := range [...]*time.Time{&r.StartedAt, &r.CompletedAt, &r.ResultExpiresAt} {
		if *t != (time.Time{}) {
			*t = saneTime(*t)
		}
	}
	if r.Failure != nil {
		f := Failure{Kind: r.Failure.Kind, Code: clip(r.Failure.Code, maxWord), Message: clip(r.Failure.Message, 4096)}
		if f.Kind > FailureNoOutput {
			f.Kind = FailureUnknown
		}
		r.Failure = &f
	}
	r.Ref = saneRef(r.Ref)
	if len(r.Output) > MaxOutput {
		r.Output, r.OutputDropped = nil, true
	} else if len(r.Output) > 0 {
		r.Output = ownOutput(r.Output)
		r.OutputDropped = r.OutputDropped || r.Output == nil
	}
}

// ownOutput makes a copy of an output, which the Checker may go on using, in
// the form in which it comes back from a store: compact, valid UTF-8. One that
// is no JSON is kept as a JSON string. Nil: that is too large.
func ownOutput(out json.RawMessage) json.RawMessage {
	var b bytes.Buffer
	b.Grow(len(out))
	if err := json.Compact(&b, out); err != nil {
		quoted, _ := marshal(string(out))
		if len(quoted) > MaxOutput {
			return nil
		}
		return quoted
	}
	if !utf8.Valid(b.Bytes()) {
		return bytes.ToValidUTF8(b.Bytes(), []byte("?"))
	}
	return b.Bytes()
}

// saneRef drops a reference that could not be stored as it is.
func saneRef(ref string) string {
	if ref != "" && (len(ref) > maxRef || !utf8.ValidString(ref)) {
		return ""
	}
	return ref
}

// maxRef bounds Job.Ref, in bytes.
const maxRef = 64 << 10

// saneTime drops times that encoding/json could not write or that mean nothing.
func saneTime(t time.Time) time.Time {
	if t.IsZero() {
		return time.Time{}
	}
	t = t.Round(0).UTC()
	if y := t.Year(); y < 1970 || y > 9000 {
		return time.Time{}
	}
	return t
}
