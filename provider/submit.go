package provider

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/jobpoll/jobpoll"
	"github.com/jobpoll/jobpoll/internal/sending"
)

// Errors of Submit, for errors.Is.
var (
	// ErrAmbiguous is matched where the provider may have taken the job though no
	// id is known: the answer was lost, or broken, or is a 5xx, a 409 or a redirect.
	// To submit again may be to buy it twice. An error that does not match it is
	// sure: nothing was bought. It is jobpoll.ErrAmbiguous, by which Poller.Submit
	// knows it, as it knows jobpoll.ErrNotSent of what never left.
	ErrAmbiguous = jobpoll.ErrAmbiguous
	// ErrNoID is matched where an answer of success names no id. It is
	// ErrAmbiguous too. There is nothing to look at: an id of one's own is none
	// of the provider's.
	ErrNoID = errors.New("jobpoll: the answer to the submission has no id")
)

// Order is a job to start.
type Order struct {
	// Model is the provider's name of the model. It is also the Profile of the
	// Job; add the settings that change how long a job takes.
	Model string
	// Input is sent as JSON, where the provider expects it; Stability and OpenAI
	// take a Form, for the image in it.
	Input any
	// Webhook is the URL that the provider is to call. Empty: none.
	Webhook string
	// Path is another endpoint of the provider than that of the model. Empty:
	// what the adapter makes of Model.
	Path string
	// ClientKey is an id of the caller's, one for each job that is bought, which goes
	// along where the provider takes one that the job can be looked for by: at
	// Kling's, of both generations, as the external_task_id, if Input has none. No
	// other adapter sends it: the other providers document no such id, and of the
	// Operation-Id of Azure's convention each service says itself whether and in what
	// form it takes it, so that it goes into Header. Empty: none, but for Send, which
	// puts that of the Submission there.
	ClientKey string
	// Header are more headers, by which providers take options.
	Header http.Header
}

// Post makes the one POST that starts a job, and decodes the answer into into. It
// is Do, but for errors: they match ErrAmbiguous where the provider may have
// taken the job. Neither the Client nor net/http sends it again. A Body of nil is
// an empty JSON object: net/http repeats what has no body.
func (c *Client) Post(ctx context.Context, r Request, into any) (Answer, error) {
	r.Method = http.MethodPost
	if r.Body == nil {
		r.Body = struct{}{}
	}
	ans, sent, err := c.do(ctx, &r, into)
	switch {
	case err == nil:
	case !sent:
		err = marked(err, jobpoll.ErrNotSent)
	case ans.Status < 400 || ans.Status > 499 || ans.Status == http.StatusRequestTimeout || ans.Status == http.StatusConflict:
		err = marked(err, ErrAmbiguous)
	}
	return ans, err
}

// Submitter is what the adapters of this package are besides a jobpoll.Checker.
type Submitter interface {
	Submit(ctx context.Context, o Order) (jobpoll.Job, jobpoll.Report, error)
}

// Submission makes the jobpoll.Submission of an order: a job that is watched on the
// Route of that name and known by the ClientKey, with the order's Model as its
// Profile, and Send as what sends it. What else is known of the Job (Expected, a
// Deadline, a Profile with the settings, see Profile) may be set in what it returns.
// It reports nothing: an empty route or clientKey, and an order that cannot be sent,
// are errors of Poller.Submit. Until that has sent it, do not change what o holds.
func Submission(route, clientKey string, s Submitter, o Order) jobpoll.Submission {
	return jobpoll.Submission{Job: jobpoll.Job{Route: route, ClientKey: clientKey, Profile: o.Model}, Send: Send(s, o)}
}

// Send makes the Send of a jobpoll.Submission of an order: one POST. Submission makes
// the whole of it; with a Send alone, put the same Profile into the Submission's Job
// as the order's Model has. Where Order.ClientKey is empty it is that of the
// Submission's Job, by which the Lookup of a provider that takes it finds a job of
// which the answer was lost.
func Send(s Submitter, o Order) func(context.Context) (jobpoll.Sent, error) {
	return func(ctx context.Context) (jobpoll.Sent, error) {
		o := o
		o.ClientKey = either(o.ClientKey, sending.ClientKey(ctx))
		job, rep, err := s.Submit(ctx, o)
		return jobpoll.Sent{ID: job.ID, Ref: job.Ref, Report: rep, SubmittedAt: job.SubmittedAt}, err
	}
}

// ready says what keeps an order from being sent.
func (o *Order) ready() error {
	if o.Model == "" && o.Path == "" {
		return &jobpoll.CheckError{Kind: jobpoll.ErrorInvalid, Err: errors.New("Order.Model is empty, and so is Order.Path")}
	}
	return nil
}

// Taken makes the Job of an answer to a submission, with what the provider asked
// for as the first look's NotBefore. The Route is the caller's to fill in. An
// empty id is an error that matches ErrNoID and ErrAmbiguous.
func (c *Client) Taken(ans Answer, o Order, id, ref string) (jobpoll.Job, error) {
	if id == "" {
		return jobpoll.Job{}, marked(ans.Errorf(jobpoll.ErrorTransient, "look for it at the provider before you submit it again"), ErrNoID, ErrAmbiguous)
	}
	now := c.Now()
	job := jobpoll.Job{ID: id, Ref: ref, Profile: o.Model, SubmittedAt: now}
	if ans.Hint.RetryAfter > 0 {
		job.NotBefore = now.Add(ans.Hint.RetryAfter)
	}
	return job, nil
}

// marked adds to the cause of a CheckError what it matches.
func marked(err error, also ...error) error {
	var ce *jobpoll.CheckError
	if !errors.As(err, &ce) {
		return errors.Join(append(also, err)...)
	}
	more := *ce
	more.Err = &matching{also: also, err: ce.Err}
	return &more
}

// matching is an error that matches others besides its own.
type matching struct {
	also []error
	err  error
}

func (m *matching) Error() string { return fmt.Sprintf("%v: %v", m.also[0], m.err) }

func (m *matching) Unwrap() []error { return append(m.also[:len(m.also):len(m.also)], m.err) }

// neverSent reports whether no byte of a request can have left: there was no
// connection, to the provider or to a proxy, or none that could be trusted.
func neverSent(err error) bool {
	var op *net.OpError
	var untrusted *tls.CertificateVerificationError
	return errors.As(err, &op) && (op.Op == "dial" || op.Op == "proxyconnect") || errors.As(err, &untrusted)
}

// waited is when a job was taken that the provider held the call open for.
func waited(job jobpoll.Job, begun time.Time) jobpoll.Job {
	if begun.Before(job.SubmittedAt) {
		job.SubmittedAt = begun
	}
	return job
}
