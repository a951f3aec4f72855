package provider

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"

	"github.com/jobpoll/jobpoll"
)

// GoogleLRO is the adapter for long-running operations by Google's convention
// AIP-151, of any service that has them. It is a jobpoll.Checker, Canceler and
// Refresher, and safe for concurrent use.
//
// A Job's ID is the whole name of the operation, slashes and all ("projects/p/
// operations/o"), which is asked for below BaseURL and its version:
// "https://service.googleapis.com/v1". The Output is the field "response", with the
// "@type" that says what it is; one that has nothing else is none. There
// are no words: an operation is done or it is not. That it waits cannot be told
// from that it runs.
//
// An operation that is done with an error failed by its code, of google.rpc.Code:
// 1 is a cancellation and 4 an expired job; 3 is FailureRejected, 7 FailurePolicy,
// 8 FailureQuota, 13 and 14 FailureFault. One whose text names Google's practices of
// responsible AI, or its usage guidelines, is FailureFiltered, whatever the code.
// Not verified at Google itself: the wait
// of a RetryInfo in the body of a 429, which public clients read there.
//
// Source: https://google.aip.dev/151, and google/rpc/code.proto of
// https://github.com/googleapis/googleapis for the numbers
type GoogleLRO struct{ c *Client }

var (
	_ jobpoll.Checker   = (*GoogleLRO)(nil)
	_ jobpoll.Canceler  = (*GoogleLRO)(nil)
	_ jobpoll.Refresher = (*GoogleLRO)(nil)
)

// NewGoogleLRO makes the adapter. BaseURL is required, and so is Tokens,
// which gives access tokens, or Credentials where another renews them.
func NewGoogleLRO(cfg Config) (*GoogleLRO, error) {
	c, err := newAdapter(cfg.orElse("", "Bearer", explainGoogle), "GOOGLE_ACCESS_TOKEN")
	if err != nil {
		return nil, err
	}
	return &GoogleLRO{c}, nil
}

// rpcCodes are the codes of google.rpc.Code that say why an operation failed.
var rpcCodes = map[string]jobpoll.FailureKind{
	"3":  jobpoll.FailureRejected,
	"7":  jobpoll.FailurePolicy,
	"8":  jobpoll.FailureQuota,
	"13": jobpoll.FailureFault,
	"14": jobpoll.FailureFault,
}

// explainGoogle reads the wait that stands in the body: "12s".
func explainGoogle(ans Answer, e *jobpoll.CheckError) {
	var v struct {
		Error struct {
			Details []struct {
				Delay Text `json:"retryDelay"`
			} `json:"details"`
		} `json:"error"`
	}
	ans.decode(&v)
	for _, d := range v.Error.Details {
		if s, ok := strings.CutSuffix(string(d.Delay), "s"); ok {
			e.Hint.RetryAfter = max(e.Hint.RetryAfter, Text(s).Seconds())
		}
	}
}

// googleOutput is a response that has more to tell than its type: that of a call with
// nothing to give is google.protobuf.Empty.
func googleOutput(response json.RawMessage) (json.RawMessage, jobpoll.Failure) {
	typed, more := false, false
	m := members(response)
	for m.next() {
		switch {
		case m.is("@type"):
			typed = true
		case m.is("value"): // of a type that is no object of its own
			more = more || HasOutput(m.value)
		default:
			more = true
		}
	}
	if typed && !more {
		return nil, jobpoll.Failure{}
	}
	return response, jobpoll.Failure{}
}

// operation is what is told of an operation.
type operation struct {
	Name  Text `json:"name"`
	Done  Text `json:"done"`
	Error struct {
		Code    Text `json:"code"`
		Message Text `json:"message"`
	} `json:"error"`
	Response json.RawMessage `json:"response"`

	// output reads the response.
	output func(response json.RawMessage) (json.RawMessage, jobpoll.Failure)
}

// readable reports whether it is an operation: it has a name, or is done, which says
// as much where a proxy takes names away.
func (v *operation) readable() bool { return v.Name != "" || v.done() }
func (v *operation) id() string     { return string(v.Name) }
func (v *operation) done() bool     { return strings.EqualFold(strings.TrimSpace(string(v.Done)), "true") }

func (v *operation) refusal(ans *Answer) error {
	if !v.readable() {
		return ans.Errorf(jobpoll.ErrorTransient, "an answer that is no operation: it has no name")
	}
	return nil
}

func (v *operation) report(ans *Answer) (jobpoll.Report, error) {
	r := jobpoll.Report{State: jobpoll.StateRunning, Hint: ans.Hint}
	if !v.done() {
		return r, nil
	}
	code := string(v.Error.Code)
	if (code != "" && code != "0") || v.Error.Message != "" {
		switch r.State = jobpoll.StateFailed; code {
		case "1":
			r.State = jobpoll.StateCanceled
		case "4":
			r.State = jobpoll.StateExpired
		}
		f := filtered(jobpoll.Failure{Kind: rpcCodes[code], Code: code, Message: string(v.Error.Message)})
		if mentions([]string{"responsible ai", "usage guidelines"}, f.Message) {
			f.Kind = jobpoll.FailureFiltered
		}
		settle(&r, nil, f)
		return r, nil
	}
	r.State = jobpoll.StateSucceeded
	output, failure := v.output(v.Response)
	settle(&r, output, failure)
	return r, nil
}

// Check asks about one operation.
func (p *GoogleLRO) Check(ctx context.Context, job jobpoll.Job) (jobpoll.Report, error) {
	return p.c.look(ctx, Request{URL: p.c.path(job.ID)}, &operation{output: googleOutput})
}

// Cancel asks the service to cancel an operation, by the method of the
// convention, which a service need not have.
func (p *GoogleLRO) Cancel(ctx context.Context, job jobpoll.Job) error {
	_, err := p.c.Do(ctx, Request{Method: http.MethodPost, URL: p.c.path(job.ID) + ":cancel", Body: struct{}{}}, nil)
	return err
}

// Refresh asks Config.Tokens, or Config.Credentials, for a token anew.
func (p *GoogleLRO) Refresh(ctx context.Context) error { return p.c.Refresh(ctx) }

// Submit starts an operation, by one POST that is never repeated, of Order.Input to
// Order.Path, which is required.
func (p *GoogleLRO) Submit(ctx context.Context, o Order) (jobpoll.Job, jobpoll.Report, error) {
	if err := o.toPath(); err != nil {
		return jobpoll.Job{}, jobpoll.Report{}, err
	}
	return p.c.submit(ctx, o, Request{URL: o.Path, Header: o.Header, Body: o.Input}, &operation{output: googleOutput}, nil)
}

// toPath says what keeps an order from being sent to its path.
func (o *Order) toPath() error {
	if o.Path == "" {
		return invalid("Order.Path is empty: it is the method that starts the job")
	}
	return o.noWebhook()
}
