package provider

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"path"
	"strings"

	"github.com/jobpoll/jobpoll"
)

// AzureLRO is the adapter for long-running operations by Azure's convention, of any
// service that has them. It is a jobpoll.Checker, Fetcher and Refresher, and safe
// for concurrent use; the convention has no cancellation.
//
// Job.Ref says where an operation is asked for. Submit fills it in; what was started
// in another way, by a PUT for instance, has that of AzureRef:
//
//   - A URL, as Operation-Location or Azure-AsyncOperation gives it, is a monitor: its
//     answers have a status, and the Output is the field "result". Where they have
//     no result, a second URL after a space, or their resourceLocation, is where to get
//     it: Check gives a success without an Output, and Fetch the Output.
//   - "location:" and a URL, of a Location alone: a 202 is a job that is not done, and
//     the body of another success is the Output. A Location that moves is followed.
//   - "resource:" and a URL is a resource that was put: its provisioningState is the
//     status, without one it is done, and the Output is the resource.
//
// An operation that is done and has nothing to give, as of a DELETE, ends as failed
// with FailureNoOutput. Where the monitor is on another host than BaseURL, name that
// in Config.Hosts.
//
// Words are those of the convention, and some that services add; others are no end.
// (Microsoft's client takes each for one that has "succeeded" or "fail" in it.)
// Retry-After of a pending answer is kept. A monitor can be read for 24 hours
// after the end at least.
//
// Source: Microsoft's clients @azure/core-lro 3.3.1 and azcore 1.24.0 of Go, and
// https://github.com/microsoft/api-guidelines
type AzureLRO struct{ c *Client }

var (
	_ jobpoll.Checker   = (*AzureLRO)(nil)
	_ jobpoll.Fetcher   = (*AzureLRO)(nil)
	_ jobpoll.Refresher = (*AzureLRO)(nil)
)

// azureWords are the words of an operation's status: those of the convention, and
// those that some services have besides.
var azureWords = jobpoll.Words{
	"NotStarted":   jobpoll.StateQueued,
	"Accepted":     jobpoll.StateQueued,
	"Pending":      jobpoll.StateQueued,
	"Queued":       jobpoll.StateQueued,
	"Running":      jobpoll.StateRunning,
	"InProgress":   jobpoll.StateRunning,
	"Processing":   jobpoll.StateRunning,
	"Validating":   jobpoll.StateRunning,
	"Provisioning": jobpoll.StateRunning,
	"Creating":     jobpoll.StateRunning,
	"Updating":     jobpoll.StateRunning,
	"Deleting":     jobpoll.StateRunning,
	"Succeeded":    jobpoll.StateSucceeded,
	"Completed":    jobpoll.StateSucceeded,
	"Failed":       jobpoll.StateFailed,
	"Canceled":     jobpoll.StateCanceled,
	"Cancelled":    jobpoll.StateCanceled,

	"PartiallySucceeded": jobpoll.StateSucceeded,
	"ValidationFailed":   jobpoll.StateFailed,
}

// NewAzureLRO makes the adapter. BaseURL is required, and so is one of Tokens,
// which gives access tokens, and Credentials, with the Header "api-key" a key.
func NewAzureLRO(cfg Config) (*AzureLRO, error) {
	c, err := newAdapter(cfg.orElse("", "Bearer", nil), "AZURE_API_KEY")
	if err != nil {
		return nil, err
	}
	return &AzureLRO{c}, nil
}

// azureStatus is what a monitor tells of an operation.
type azureStatus struct {
	ID         Text            `json:"id"`
	Status     status          `json:"status"`
	Error      openAIError     `json:"error"`
	Result     json.RawMessage `json:"result"`
	Elsewhere  Text            `json:"resourceLocation"` // where the result is
	State      string          `json:"provisioningState"`
	Properties struct {
		State string `json:"provisioningState"`
	} `json:"properties"`

	at azureRef
}

func (v *azureStatus) readable() bool        { return v.Status.told || v.at.kind != "" }
func (v *azureStatus) id() string            { return string(v.ID) }
func (v *azureStatus) refusal(*Answer) error { return nil }

func (v *azureStatus) report(ans *Answer) (jobpoll.Report, error) {
	word, bare := v.Status.word, v.at.kind != ""
	output := v.Result
	if put := either(v.Properties.State, v.State); v.at.kind == atResource {
		word, output, v.Status.told = put, ans.Body, false
	} else if bare && word == "" && ans.Status != http.StatusAccepted && unhappy(azureWords.State(put)) {
		word = put
	}
	r := jobpoll.Report{State: azureWords.State(word), RawStatus: word, Hint: ans.Hint}
	switch {
	case word != "":
	case bare && ans.Status == http.StatusAccepted:
		r.State = jobpoll.StateRunning
	case bare && !v.Status.told && v.Error == (openAIError{}) && isObject(ans.Body):
		r.State, output = jobpoll.StateSucceeded, ans.Body
	default:
		return jobpoll.Report{}, noStatus(ans)
	}
	if !r.State.Terminal() {
		return r, nil
	}
	result := v.at.result
	if v.at.kind == "" {
		result = either(asAzureURL(string(v.Elsewhere)), result)
	}
	if r.State == jobpoll.StateSucceeded && result != "" && !HasOutput(output) {
		r.Ref = v.at.url + " " + result // the output is one more call away
		return r, nil
	}
	settle(&r, output, azureFailure(string(v.Error.Code), string(v.Error.Message)))
	return r, nil
}

// unhappy reports whether a job has ended otherwise than by succeeding. Only such
// a state of a resource says more than the status of a Location.
func unhappy(s jobpoll.State) bool { return s.Terminal() && s != jobpoll.StateSucceeded }

// isObject reports whether a body, which is JSON, is an object.
func isObject(body []byte) bool {
	return bytes.HasPrefix(bytes.TrimSpace(body), []byte("{"))
}

func azureFailure(code, text string) jobpoll.Failure {
	f := jobpoll.Failure{Code: code, Message: text}
	if mentions([]string{"contentfilter", "content_filter"}, code) {
		f.Kind = jobpoll.FailureFiltered
	}
	return filtered(f)
}

// What goes before a URL in a Ref, if it is not of a monitor.
const (
	atLocation = "location:"
	atResource = "resource:"
)

// azureRef is a Job.Ref.
type azureRef struct {
	kind   string // atLocation, atResource, or empty
	url    string
	result string // where the output of a monitor is
}

func readAzureRef(ref string) azureRef {
	var r azureRef
	for _, kind := range []string{atLocation, atResource} {
		if rest, ok := strings.CutPrefix(ref, kind); ok {
			r.kind, ref = kind, rest
		}
	}
	r.url, r.result, _ = strings.Cut(ref, " ")
	return r
}

// Check asks about one operation.
func (p *AzureLRO) Check(ctx context.Context, job jobpoll.Job) (jobpoll.Report, error) {
	at := readAzureRef(job.Ref)
	if at.url == "" {
		return jobpoll.Report{}, invalid("%s: an operation needs the URL of its monitor as Job.Ref", job.Key())
	}
	v := &azureStatus{at: at}
	ans, err := p.c.Do(ctx, Request{URL: at.url}, v)
	empty := ans.Status == http.StatusNoContent || errors.Is(err, errEmptyBody)
	var r jobpoll.Report
	switch {
	case empty && ans.Status == http.StatusAccepted:
		r, err = jobpoll.Report{State: jobpoll.StateRunning, Hint: ans.Hint}, nil
	case empty && at.kind == atLocation: // done, and nothing to give
		r, err = jobpoll.Report{State: jobpoll.StateSucceeded, Hint: ans.Hint}, nil
		settle(&r, nil, jobpoll.Failure{})
	default:
		r, err = told(&ans, err, v)
	}
	if moved := ans.Header.Get("Location"); err == nil && at.kind == atLocation && !r.State.Terminal() && p.c.Ref(moved) != "" {
		r.Ref = atLocation + moved
	}
	return r, err
}

// Fetch gets the output of an operation whose monitor does not have it, from the
// second URL of the Ref.
func (p *AzureLRO) Fetch(ctx context.Context, job jobpoll.Job, done jobpoll.Report) (jobpoll.Report, error) {
	at := readAzureRef(either(done.Ref, job.Ref))
	if at.result == "" {
		return jobpoll.Report{}, invalid("%s: its Ref has no URL of a result", job.Key())
	}
	v := &azureResult{}
	ans, err := p.c.Do(ctx, Request{URL: at.result}, v)
	if errors.Is(err, errEmptyBody) || ans.Status == http.StatusNoContent {
		err = nil // nothing to give
	}
	if err != nil {
		return jobpoll.Report{}, err
	}
	r := jobpoll.Report{State: jobpoll.StateSucceeded, RawStatus: done.RawStatus, Hint: ans.Hint}
	settle(&r, v.RawMessage, jobpoll.Failure{})
	return r, nil
}

// azureResult is any JSON.
type azureResult struct{ json.RawMessage }

// Refresh asks Config.Credentials for the key, or Config.Tokens for a token, anew.
func (p *AzureLRO) Refresh(ctx context.Context) error { return p.c.Refresh(ctx) }

// Submit starts an operation, by one POST that is never repeated, of Order.Input to
// Order.Path, which is required, with the query of the service's version. The
// convention lets a client make a start repeatable, by the header Operation-Id, or
// Repeatability-Request-ID with Repeatability-First-Sent: give them as
// Order.Header. The id of the Job is that of the body, or the last part of the
// monitor's URL.
func (p *AzureLRO) Submit(ctx context.Context, o Order) (jobpoll.Job, jobpoll.Report, error) {
	if err := o.toPath(); err != nil {
		return jobpoll.Job{}, jobpoll.Report{}, err
	}
	ans, err := p.c.Post(ctx, Request{URL: o.Path, Header: o.Header, Body: o.Input}, nil)
	if err != nil {
		return jobpoll.Job{}, jobpoll.Report{}, err
	}
	ref := AzureRef(ans.Header, "")
	v := azureStatus{at: readAzureRef(ref)}
	ans.decode(&v) // there may be no body
	id := v.id()
	if id == "" {
		id = lastPart(v.at.url)
	}
	if ref == "" {
		id = "" // it could not be asked about
	}
	job, err := p.c.Taken(ans, o, id, ref)
	if err != nil {
		return jobpoll.Job{}, jobpoll.Report{}, err
	}
	rep := jobpoll.Report{Hint: ans.Hint}
	if v.Status.told { // a success without one is of the call, not of the job
		if told, err := v.report(&ans); err == nil {
			rep = told
		}
	}
	return job, rep, nil
}

// AzureRef is the Job.Ref of an operation that was started in another way than by
// Submit: header is that of the answer, and resource the URL that was put or patched,
// empty of another method. It is empty where nothing says what to look at.
func AzureRef(header http.Header, resource string) string {
	location := azureURL(header, "Location")
	for _, name := range []string{"Operation-Location", "Azure-AsyncOperation"} {
		at := azureURL(header, name)
		if at == "" {
			continue
		}
		if result := either(resource, location); result != "" && result != at {
			at += " " + result
		}
		return at
	}
	switch {
	case location != "":
		return atLocation + location
	case resource != "":
		return atResource + resource
	}
	return ""
}

// azureURL is the URL, or the path, in a header; empty if there is none.
func azureURL(h http.Header, name string) string { return asAzureURL(h.Get(name)) }

// asAzureURL is at, if that is a URL or a path; else empty.
func asAzureURL(at string) string {
	if len(at) > maxURL || strings.Contains(at, " ") || !strings.HasPrefix(at, "/") && !strings.Contains(at, "://") {
		return ""
	}
	return at
}

// lastPart is the last part of the path of a URL; empty if it has none.
func lastPart(rawURL string) string {
	u, err := url.Parse(rawURL)
	if err != nil {
		return ""
	}
	if last := path.Base(u.Path); last != "." && last != "/" {
		return last
	}
	return ""
}
