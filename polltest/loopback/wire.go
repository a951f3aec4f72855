package loopback

import (
	"bytes"
	"encoding/json"
	"fmt"
	"mime"
	"mime/multipart"
	"net/http"
	"strings"
	"time"

	"github.com/jobpoll/jobpoll"
	"github.com/jobpoll/jobpoll/polltest"
)

// Wire is the shape in which one provider speaks HTTP. It only translates: the
// Server decides what is so. Its methods may be called from several goroutines
// at once.
type Wire interface {
	// ID makes the id of the nth job, from 1 on. Different n give different ids.
	ID(n int) string
	// Read says what a request asks for. body is all of its body.
	Read(r *http.Request, body json.RawMessage) Call
	// Write words the answer to a request that is granted.
	Write(r Reply) Answer
	// Error words the answer to one that is not.
	Error(p Problem) Answer
}

// Op is what a request asks for.
type Op uint8

// The operations.
const (
	OpUnknown Op = iota // the provider has no such path or method
	OpSubmit
	OpStatus
	OpResult // a call of its own for the output
	OpCancel
	OpList
)

var opNames = [...]string{"unknown", "submit", "status", "result", "cancel", "list"}

// String returns the operation's name in lower case.
func (o Op) String() string {
	if int(o) < len(opNames) {
		return opNames[o]
	}
	return fmt.Sprintf("Op(%d)", uint8(o))
}

// Call is a request as a Wire reads it.
type Call struct {
	Op         Op
	ID         string // of the job
	Model      string // that a job is submitted to
	Credential string // as sent; empty: none
	Misplaced  bool   // OpUnknown: there is such a path, for another method
	// Queue makes a job beyond Config.MaxJobs wait for a slot; without it the
	// submission is refused.
	Queue bool
	// Hold is how long the answer to a submission waits for the job's end.
	Hold time.Duration
	// Deadline ends the job that long after its submission: expired if it does
	// not run by then, else canceled. Zero: never.
	Deadline time.Duration
	Logs     bool   // the answer should have logs
	Cursor   string // of OpList, as Reply.Next told it; a number below zero: so many newer ones are passed over
	// After begins the page of OpList with what is older than that job, whatever the
	// Cursor. Nothing is older than one that is not known.
	After string
	// Only are the jobs that OpList asks for, by their ids: it looks at each, as
	// OpStatus does. Nil: it asks for all, and is no look.
	Only []string
	// OwnID is the caller's id of the job that OpSubmit makes, by which OpStatus finds
	// it as well. A second job with the same one is a ProblemBadRequest. Empty: none.
	OwnID string
	// ByOwnID says that Only are such ids, and nothing else.
	ByOwnID bool
	// Limit is how many jobs OpList wants at most. Zero or less: Config.PageSize.
	Limit int
	// Body is that of a submission as JSON, where it is sent as a form; nil: it is
	// JSON.
	Body json.RawMessage
	// Bad makes the request a ProblemBadRequest: it lacks what the provider
	// demands beside a body, a header for instance.
	Bad bool
	// OnlyQueued makes the cancellation of a job that runs come too late, as that
	// of one that has ended.
	OnlyQueued bool
	// Forget makes a job that is canceled one that is not known any more, and
	// ForgetEnded one that had ended before.
	Forget, ForgetEnded bool
	Raw                 bool // the answer should be the bytes of the output
}

// Reply is what a Wire has to word: of one job, or for OpList a page of them.
type Reply struct {
	Call
	View
	Late  bool   // OpCancel: the job had ended before, or runs and is not to be canceled
	Page  []View // newest first
	Next  string // cursor of the next page; empty: this is the last one
	Total int    // jobs of all pages
}

// View is a job at an instant.
type View struct {
	ID, Model   string
	Base        string          // URL of the server, without a slash at the end
	Input       json.RawMessage // the body of the submission; nil for a job that was added
	Entry       polltest.Entry  // what its script tells; never one that fails. Remaining is as of Now
	Now         time.Time
	SubmittedAt time.Time
	StartedAt   time.Time // zero: not yet
	EndedAt     time.Time // zero: not yet
	Expired     bool      // the result is no longer kept
}

// Word is the script's own word, or else the one of the state.
func (v View) Word(words map[jobpoll.State]string) string {
	if v.Entry.Word != "" {
		return v.Entry.Word
	}
	return words[v.Entry.State]
}

// Message is why the job failed: what the script says, or else what a provider
// might.
func (v View) Message() string {
	if f := v.Entry.Failure; f != nil && f.Message != "" {
		return f.Message
	}
	return "the model raised an error"
}

// Output is the output of the script in a succeeded state, or else the given
// one. It is nil in any other state, and where it is no longer kept.
func (v View) Output(otherwise any) any {
	switch {
	case v.Entry.State != jobpoll.StateSucceeded, v.Expired:
		return nil
	case v.Entry.Output != nil:
		return v.Entry.Output
	}
	return otherwise
}

// Log is the line of the log that tells the progress; empty: none is told.
func (v View) Log() string {
	if v.Entry.Progress <= 0 {
		return ""
	}
	percent := int(v.Entry.Progress*100 + 0.5)
	return fmt.Sprintf("%d%%|%-10s| %d/100", percent, strings.Repeat("#", min(percent/10, 10)), percent)
}

// ProblemKind is why a request is not granted.
type ProblemKind uint8

// The problems.
const (
	ProblemScripted     ProblemKind = iota // a script or a Fault says so, with a status
	ProblemNoPath                          // OpUnknown
	ProblemBadRequest                      // the body of a submission is no JSON object, Call.Bad, or Call.OwnID
	ProblemUnauthorized                    // a wrong credential, or none
	ProblemNoJob                           // there is no such job
	ProblemNotVisible                      // there is, but the provider does not know yet
	ProblemNotReady                        // the result of a job that has not ended
	ProblemRateLimited                     // too many requests
	ProblemTooManyJobs                     // Config.MaxJobs
)

// Problem is a request that is not granted.
type Problem struct {
	Kind    ProblemKind
	Call    Call
	Status  int           // of ProblemScripted
	Message string        // of ProblemScripted and ProblemRateLimited
	Misses  int           // ProblemNotVisible: how often before
	Wait    time.Duration // that the headers tell; zero: none
}

// usual is the status of a Problem and a text, as most providers have them.
func (p Problem) usual() (status int, text string) {
	switch status, text = p.Status, p.Message; p.Kind {
	case ProblemNoPath:
		status, text = http.StatusNotFound, "there is no such path"
	case ProblemBadRequest:
		status, text = http.StatusBadRequest, "the request is not valid"
	case ProblemUnauthorized:
		status, text = http.StatusUnauthorized, "the credential is not valid"
	case ProblemNoJob, ProblemNotVisible, ProblemNotReady:
		status, text = http.StatusNotFound, "not found"
	case ProblemRateLimited:
		status = http.StatusTooManyRequests
	case ProblemTooManyJobs:
		status, text = http.StatusTooManyRequests, "too many jobs at once"
	}
	if text == "" {
		text = strings.ToLower(http.StatusText(status))
	}
	return status, text
}

// Answer is an HTTP answer before it is sent.
type Answer struct {
	Status int
	Header http.Header // beyond Content-Length, Date and waits; may be nil. Without a Content-Type it is application/json
	Body   any         // sent as JSON, but []byte as it is; nil: no body
}

// failed is the kind of a failure and why, of a failed job alone.
func (v View) failed() (kind jobpoll.FailureKind, why string, ok bool) {
	if v.Entry.State != jobpoll.StateFailed {
		return kind, "", false
	}
	if f := v.Entry.Failure; f != nil {
		kind = f.Kind
	}
	return kind, v.Message(), true
}

// percent is the progress from 0 to 100.
func (v View) percent() int { return int(v.Entry.Progress*100 + 0.5) }

// file is where the output of a job is.
func (v View) file() string { return "https://files.example.test/" + v.ID + ".mp4" }

// below returns the last part of a path that has one part more than before.
func below(path, before string) (last string, ok bool) {
	last, ok = strings.CutPrefix(path, before)
	return last, ok && last != "" && !strings.Contains(last, "/")
}

// member is a text of the body of a submission; empty: it has none.
func member(body json.RawMessage, name string) string {
	var object map[string]json.RawMessage
	_ = json.Unmarshal(body, &object) // the server refuses what is no object
	var text string
	_ = json.Unmarshal(object[name], &text)
	return text
}

// formFile is what is told of a file of a form.
type formFile struct {
	Name string `json:"name"`
	Type string `json:"type"` // as it was sent
	Size int64  `json:"size"` // bytes
}

// formInput is a body of multipart/form-data as a JSON object, of each field the text,
// of each file a formFile; nil: it is of another type.
func formInput(r *http.Request, body json.RawMessage) json.RawMessage {
	kind, params, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || kind != "multipart/form-data" {
		return nil
	}
	form, err := multipart.NewReader(bytes.NewReader(body), params["boundary"]).ReadForm(maxRequestBody)
	if err != nil {
		return nil
	}
	defer func() { _ = form.RemoveAll() }()
	fields := map[string]any{}
	for name, values := range form.Value {
		fields[name] = values[0]
	}
	for name, files := range form.File {
		fields[name] = formFile{files[0].Filename, files[0].Header.Get("Content-Type"), files[0].Size}
	}
	input, _ := json.Marshal(fields) // strings and numbers alone
	return input
}

// unix is an instant in seconds; null if it is zero.
func unix(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return t.Unix()
}

// changed is when the job last changed, as far as that is told.
func (v View) changed() time.Time {
	switch {
	case !v.EndedAt.IsZero():
		return v.EndedAt
	case !v.StartedAt.IsZero():
		return v.StartedAt
	}
	return v.SubmittedAt
}

// bearer returns the token of an Authorization header with one of the schemes.
func bearer(r *http.Request, schemes ...string) string {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	for _, s := range schemes {
		if strings.EqualFold(scheme, s) {
			return strings.TrimSpace(token)
		}
	}
	return ""
}

// orNil makes an empty text a null in JSON.
func orNil(s string) any {
	if s == "" {
		return nil
	}
	return s
}

// stamp is an instant as JSON has it, with milliseconds; null if it is zero.
func stamp(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return t.UTC().Format("2006-01-02T15:04:05.000Z")
}
