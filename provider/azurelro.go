package provider

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"path"
	"strings"

	"github.com/jobpoll/jobpoll"
)

// AzureLRO is the adapter for long-running operations by Azure's convention, of any
// service that has them. It is a jobpoll.Checker and Refresher, and safe for
// concurrent use; the convention has no cancellation.
//
// Job.Ref is the URL of the monitor, with its query, as the answer to the
// submission gives it in Operation-Location or Azure-AsyncOperation. Its answers
// have a status, and the Output is the field "result". A service that gives a
// Location alone may have no status there: then a 202 is a job that is not done,
// and the body of another success is the Output. Such a Ref has "location:" before
// the URL. Submit fills either in. Where the monitor is on another host than
// BaseURL, name that in Config.Hosts.
//
// Words are those of the convention; services may add others, which are no end.
// Retry-After of a pending answer is kept. A monitor can be read for 24 hours
// after the end at least.
//
// Source: Microsoft's client @azure/core-lro 3.3.1, and
// https://github.com/microsoft/api-guidelines
type AzureLRO struct{ c *Client }

var (
	_ jobpoll.Checker   = (*AzureLRO)(nil)
	_ jobpoll.Refresher = (*AzureLRO)(nil)
)

// azureWords are all words of an operation's status.
var azureWords = jobpoll.Words{
	"NotStarted": jobpoll.StateQueued,
	"Running":    jobpoll.StateRunning,
	"Succeeded":  jobpoll.StateSucceeded,
	"Failed":     jobpoll.StateFailed,
	"Canceled":   jobpoll.StateCanceled,
	"Cancelled":  jobpoll.StateCanceled,
}

// NewAzureLRO makes the adapter. BaseURL and Credentials are required: an access
// token, or with the Header "api-key" a key.
func NewAzureLRO(cfg Config) (*AzureLRO, error) {
	c, err := newAdapter(cfg.orElse("", "Bearer", nil), "AZURE_API_KEY")
	if err != nil {
		return nil, err
	}
	return &AzureLRO{c}, nil
}

// azureStatus is what a monitor tells of an operation.
type azureStatus struct {
	ID     Text            `json:"id"`
	Word   json.RawMessage `json:"status"` // some answers have none
	Error  openAIError     `json:"error"`
	Result json.RawMessage `json:"result"`

	bare bool // the monitor is a Location
}

func (v *azureStatus) readable() bool        { return v.Word != nil || v.bare }
func (v *azureStatus) id() string            { return string(v.ID) }
func (v *azureStatus) refusal(*Answer) error { return nil }

func (v *azureStatus) report(ans *Answer) (jobpoll.Report, error) {
	word := ""
	_ = json.Unmarshal(v.Word, &word) // what is no text is no word
	r := jobpoll.Report{State: azureWords.State(word), RawStatus: word, Hint: ans.Hint}
	output := v.Result
	switch {
	case word != "":
	case v.bare && ans.Status == http.StatusAccepted:
		r.State = jobpoll.StateRunning
	case v.bare && v.Word == nil && v.Error == (openAIError{}) && isObject(ans.Body):
		r.State, output = jobpoll.StateSucceeded, ans.Body
	default:
		return jobpoll.Report{}, noStatus(ans)
	}
	settle(&r, output, azureFailure(string(v.Error.Code), string(v.Error.Message)))
	return r, nil
}

// isObject reports whether a body is a JSON object.
func isObject(body []byte) bool {
	var o map[string]json.RawMessage
	return json.Unmarshal(body, &o) == nil && o != nil
}

func azureFailure(code, text string) jobpoll.Failure {
	f := jobpoll.Failure{Code: code, Message: text}
	if mentions([]string{"contentfilter", "content_filter"}, code) {
		f.Kind = jobpoll.FailureFiltered
	}
	return filtered(f)
}

// atLocation goes before a Ref whose monitor is a Location.
const atLocation = "location:"

// Check asks about one operation.
func (p *AzureLRO) Check(ctx context.Context, job jobpoll.Job) (jobpoll.Report, error) {
	at, bare := strings.CutPrefix(job.Ref, atLocation)
	if at == "" {
		return jobpoll.Report{}, invalid("%s: an operation needs the URL of its monitor as Job.Ref", job.Key())
	}
	return p.c.lookAccepted(ctx, Request{URL: at}, &azureStatus{bare: bare})
}

// Refresh asks Config.Credentials for the key, or the token, anew.
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
	ref := azureMonitor(ans.Header)
	v := azureStatus{bare: strings.HasPrefix(ref, atLocation)}
	ans.decode(&v) // there may be no body
	id := v.id()
	if id == "" {
		id = lastPart(strings.TrimPrefix(ref, atLocation))
	}
	if ref == "" {
		id = "" // it could not be asked about
	}
	job, err := p.c.Taken(ans, o, id, ref)
	if err != nil {
		return jobpoll.Job{}, jobpoll.Report{}, err
	}
	rep := jobpoll.Report{Hint: ans.Hint}
	if v.Word != nil { // a success without one is of the call, not of the job
		if told, err := v.report(&ans); err == nil {
			rep = told
		}
	}
	return job, rep, nil
}

// azureMonitor is the Ref of an answer to a submission; empty if it names none.
func azureMonitor(h http.Header) string {
	for _, name := range []string{"Operation-Location", "Azure-AsyncOperation"} {
		if at := h.Get(name); at != "" && len(at) <= maxURL {
			return at
		}
	}
	if at := h.Get("Location"); at != "" && len(at) <= maxURL {
		return atLocation + at
	}
	return ""
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
