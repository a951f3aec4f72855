package provider

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/jobpoll/jobpoll"
)

// What most adapters have in common: the order in which an answer is read
// (transport, HTTP status, code of the envelope, word, output), and what is made
// of an end.

// reply is an answer of a provider, as a struct of an adapter.
type reply interface {
	// readable reports whether what matters is there, whatever the types of the rest.
	readable() bool
	// refusal is the error that an envelope tells under an HTTP status of success.
	refusal(ans *Answer) error
	// report makes a Report of it.
	report(ans *Answer) (jobpoll.Report, error)
}

// receipt is the answer to a submission.
type receipt interface {
	reply
	id() string
}

// look asks about one job.
func (c *Client) look(ctx context.Context, r Request, v reply) (jobpoll.Report, error) {
	ans, err := c.Do(ctx, r, v)
	return told(&ans, err, v)
}

// lookAccepted is look where a 202 without a body says that a job is not done.
func (c *Client) lookAccepted(ctx context.Context, r Request, v reply) (jobpoll.Report, error) {
	ans, err := c.Do(ctx, r, v)
	if ans.Status == http.StatusAccepted && errors.Is(err, errEmptyBody) {
		return jobpoll.Report{State: jobpoll.StateRunning, Hint: ans.Hint}, nil
	}
	return told(&ans, err, v)
}

// told is what an answer says, with the error of the call.
func told(ans *Answer, err error, v reply) (jobpoll.Report, error) {
	if err := forgive(err, v.readable()); err != nil {
		return jobpoll.Report{}, err
	}
	if err := v.refusal(ans); err != nil {
		return jobpoll.Report{}, err
	}
	return v.report(ans)
}

// submit starts a job by one POST; ref makes the Job's Ref of the answer, nil for
// none. An answer without a status is no loss: the first look will tell.
func (c *Client) submit(ctx context.Context, o Order, r Request, v receipt, ref func(*Answer) string) (jobpoll.Job, jobpoll.Report, error) {
	ans, err := c.Post(ctx, r, v)
	if err := forgive(err, v.id() != "" || v.readable()); err != nil {
		return jobpoll.Job{}, jobpoll.Report{}, err
	}
	if err := v.refusal(&ans); err != nil && v.id() == "" {
		if !refusedSurely(err) {
			err = marked(err, ErrAmbiguous)
		}
		return jobpoll.Job{}, jobpoll.Report{}, err
	}
	place := ""
	if ref != nil {
		place = ref(&ans)
	}
	job, err := c.Taken(ans, o, v.id(), place)
	if err != nil {
		return jobpoll.Job{}, jobpoll.Report{}, err
	}
	rep, err := v.report(&ans)
	if err != nil {
		rep = jobpoll.Report{Hint: ans.Hint}
	}
	return job, rep, nil
}

// ErrEnded is matched by the error of a Cancel that came after the job's end.
var ErrEnded = errors.New("the job had ended before it could be canceled")

// ended is the error of a Cancel that came too late.
func ended(job jobpoll.Job, ans *Answer) error {
	return &jobpoll.CheckError{Kind: jobpoll.ErrorInvalid, Status: ans.Status, Err: fmt.Errorf("%s: %w", job.Key(), ErrEnded)}
}

// cancelPending makes the call r, which cancels a job and would remove one that has
// ended, with a result that was paid for. So a look comes first, and such a job is
// left alone. (It may still end in between, which nothing can prevent.)
func (c *Client) cancelPending(ctx context.Context, a jobpoll.Checker, job jobpoll.Job, r Request, into any) (Answer, error) {
	switch rep, err := a.Check(ctx, job); {
	case err != nil:
		return Answer{}, err
	case rep.State.Terminal():
		return Answer{}, ended(job, &Answer{Status: http.StatusOK})
	}
	return c.Do(ctx, r, into)
}

// refusedSurely reports whether an error of an envelope says that nothing was bought.
func refusedSurely(err error) bool {
	kind := kindOf(err)
	return kind != jobpoll.ErrorTransient && kind != jobpoll.ErrorNone
}

// settle fills in the end of a job: an output with a success and with nothing
// else; f is what the provider says of a failure. Filtered and empty successes
// are failures.
func settle(r *jobpoll.Report, output json.RawMessage, f jobpoll.Failure) {
	if !r.State.Terminal() {
		return
	}
	if r.State == jobpoll.StateSucceeded && f.Kind != jobpoll.FailureFiltered {
		if HasOutput(output) {
			r.Output = output
			return
		}
		f.Kind = jobpoll.FailureNoOutput
	}
	if r.State == jobpoll.StateSucceeded {
		r.State = jobpoll.StateFailed
	}
	if r.State == jobpoll.StateFailed || f != (jobpoll.Failure{}) {
		told := f // only a failure is worth an allocation
		r.Failure = &told
	}
}

// urls is an output that is made of URLs; nil where it has none.
func urls(output json.RawMessage) json.RawMessage {
	if !holdsText(output) {
		return nil
	}
	return output
}

// filtered makes a failure one of a filter where code or text say so.
func filtered(f jobpoll.Failure) jobpoll.Failure {
	if f.Kind == jobpoll.FailureUnknown && mentions(filterWords, f.Code, f.Message) {
		f.Kind = jobpoll.FailureFiltered
	}
	return f
}

// noStatus is the error of an answer in which the word is missing.
func noStatus(ans *Answer) error {
	return ans.Errorf(jobpoll.ErrorTransient, "an answer without a status")
}

// coded is the error of an envelope with a code of the provider's own; a code
// that the table does not have may pass.
func coded(ans *Answer, kinds map[string]jobpoll.ErrorKind, code, text string) error {
	kind, ok := kinds[code]
	if !ok {
		kind = jobpoll.ErrorTransient
	}
	err := ans.Errorf(kind, "the code %q in the answer: %s", jobpoll.Excerpt(code), jobpoll.Excerpt(text))
	scopeOf(err, kind)
	return err
}

// scopeOf says what has to wait for an error that HTTP did not tell.
func scopeOf(err error, kind jobpoll.ErrorKind) {
	var ce *jobpoll.CheckError
	if (kind == jobpoll.ErrorRateLimited || kind == jobpoll.ErrorConcurrency) && errors.As(err, &ce) {
		ce.Hint.Scope = jobpoll.ScopeBudget
	}
}

// percent reads a progress of 0 to 100 as 0 to 1; 0 is not told.
func percent(t Text) float64 { return fraction(t, 100) }

// fraction reads a progress of 0 to whole, or a text as "37%", as 0 to 1; 0 is not told.
func fraction(t Text, whole float64) float64 {
	if told, ok := strings.CutSuffix(strings.TrimSpace(string(t)), "%"); ok {
		t, whole = Text(told), 100
	}
	n, ok := t.number()
	if !ok || n <= 0 {
		return 0
	}
	return min(n/whole, 1)
}

// plain is the Request of an order whose Input goes with model and webhook in
// one JSON object; callback is the field for the webhook, empty where there is none.
func (o *Order) plain(path, callback string) (Request, error) {
	if err := o.ready(); err != nil {
		return Request{}, err
	}
	values := map[string]string{"model": o.Model}
	if callback != "" {
		values[callback] = o.Webhook
	} else if err := o.noWebhook(); err != nil {
		return Request{}, err
	}
	body, err := flat(o.Input, values)
	if err != nil {
		return Request{}, err
	}
	if o.Path != "" {
		path = o.Path
	}
	return Request{URL: path, Header: o.Header, Body: body}, nil
}

// noWebhook refuses an order with a webhook that the provider cannot be told of.
func (o *Order) noWebhook() error {
	if o.Webhook == "" {
		return nil
	}
	return &jobpoll.CheckError{Kind: jobpoll.ErrorInvalid, Err: errors.New("Order.Webhook is set, but the provider takes no webhook with an order")}
}

// withHeader is h and one more header, where it is not in h.
func withHeader(h http.Header, name, value string) http.Header {
	if h.Get(name) != "" {
		return h
	}
	h = h.Clone()
	if h == nil {
		h = http.Header{}
	}
	h.Set(name, value)
	return h
}

// listed looks for a job in the first page of a list: by its id, which is all
// that tells jobs apart. What is not found is FindingUnknown, never absent, as
// a page is bounded. The list may leave the output away: a look has the last word.
func listed(ans *Answer, id string, n int, item func(i int) (id, word string), words jobpoll.Words) jobpoll.Finding {
	for i := range n {
		found, word := item(i)
		if found != id {
			continue
		}
		rep := jobpoll.Report{Hint: ans.Hint}
		if s := words.State(word); !s.Terminal() {
			rep.State, rep.RawStatus = s, word
		}
		return jobpoll.Finding{State: jobpoll.FindingPresent, ID: id, Report: rep}
	}
	return jobpoll.Finding{}
}

// kindOf is the kind of an error of a call; ErrorNone of none.
func kindOf(err error) jobpoll.ErrorKind {
	var ce *jobpoll.CheckError
	if !errors.As(err, &ce) {
		return jobpoll.ErrorNone
	}
	return ce.Kind
}

// invalid is the error of what cannot be asked.
func invalid(format string, args ...any) error {
	return &jobpoll.CheckError{Kind: jobpoll.ErrorInvalid, Err: fmt.Errorf(format, args...)}
}

// path is the URL of a name that has slashes of its own, with its segments escaped.
func (c *Client) path(name string) string {
	return c.URL(strings.Split(strings.Trim(name, "/"), "/")...)
}
