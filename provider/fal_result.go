package provider

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	"github.com/jobpoll/jobpoll"
)

// falCodes are the codes of fal's errors, in error_type or the header
// X-Fal-Error-Type. Source: fal's document of errors, https://fal.ai/docs
var falCodes = map[string]jobpoll.FailureKind{
	"request_timeout":            jobpoll.FailureFault,
	"startup_timeout":            jobpoll.FailureFault,
	"runner_scheduling_failure":  jobpoll.FailureFault,
	"runner_connection_timeout":  jobpoll.FailureFault,
	"runner_connection_refused":  jobpoll.FailureFault,
	"runner_connection_error":    jobpoll.FailureFault,
	"runner_disconnected":        jobpoll.FailureFault,
	"runner_incomplete_response": jobpoll.FailureFault,
	"runner_server_error":        jobpoll.FailureFault,
	"internal_error":             jobpoll.FailureFault,
	"bad_request":                jobpoll.FailureRejected,
	"client_disconnected":        jobpoll.FailureUnknown, // these two are cancellations
	"client_cancelled":           jobpoll.FailureUnknown,
}

// falFailure reads the code and the text of a request that failed.
func falFailure(code, text string) (jobpoll.State, *jobpoll.Failure) {
	code = strings.ToLower(strings.TrimSpace(code))
	f := &jobpoll.Failure{Kind: falCodes[code], Code: code, Message: text}
	if mentions(filterWords, code, text) {
		f.Kind = jobpoll.FailureFiltered
	}
	if code == "client_cancelled" || code == "client_disconnected" {
		return jobpoll.StateCanceled, f
	}
	return jobpoll.StateFailed, f
}

// Fetch gets the result of a request that has left the queue. A result that is
// an error is a Report of the failure. One that is not there yet, and a fault of
// the call itself, is an error or a pending Report; the engine fetches again.
func (f *Fal) Fetch(ctx context.Context, job jobpoll.Job, done jobpoll.Report) (jobpoll.Report, error) {
	url, err := f.url(job)
	if err != nil {
		return jobpoll.Report{}, err
	}
	var out json.RawMessage
	ans, err := f.c.Get(ctx, url, &out)
	if err != nil {
		return falResultError(&ans, err, done)
	}
	return falResult(&ans, out, done), nil
}

// falResult is the Report of a result that is no error.
func falResult(ans *Answer, out json.RawMessage, done jobpoll.Report) jobpoll.Report {
	r := jobpoll.Report{State: jobpoll.StateSucceeded, RawStatus: done.RawStatus, Hint: ans.Hint}
	settle(&r, out, jobpoll.Failure{})
	return r
}

// falResultError tells the failure of a job from a fault of the call for its
// result: the former has a body or a header of fal's making.
func falResultError(ans *Answer, err error, done jobpoll.Report) (jobpoll.Report, error) {
	var ce *jobpoll.CheckError
	if !errors.As(err, &ce) || ans.Status < 400 {
		return jobpoll.Report{}, err
	}
	switch ce.Kind {
	case jobpoll.ErrorAuth, jobpoll.ErrorRateLimited, jobpoll.ErrorQuota, jobpoll.ErrorGone:
		return jobpoll.Report{}, err // of the account, or of the result's age
	}
	var v falError
	ans.decode(&v)
	code, text := v.read()
	if h := strings.ToLower(ans.Header.Get("X-Fal-Error-Type")); h != "" {
		if _, ok := falCodes[h]; ok || code == "" && len(h) <= maxFalCode {
			code = h
		}
	}
	_, known := falCodes[strings.ToLower(code)]
	byUser := strings.EqualFold(ans.Header.Get("X-Fal-Request-Timeout-Type"), "user")
	switch {
	case ans.Status != http.StatusUnprocessableEntity && !known && mentions([]string{"still in progress", "in queue"}, text):
		return jobpoll.Report{State: jobpoll.StateRunning, RawStatus: done.RawStatus, Hint: ans.Hint}, nil
	case known || byUser || ans.Status == 499:
	case (ans.Status == http.StatusUnprocessableEntity || ans.Status == http.StatusBadRequest) && (code != "" || text != ""):
	case ans.Status >= 500 && text != "" && ans.Status != http.StatusServiceUnavailable:
	default: // 403, 404, a proxy's 502, …
		return jobpoll.Report{}, err
	}
	state, failure := falFailure(code, text)
	switch {
	case byUser: // the caller's own limit, and not a fault to try again after
		failure.Kind = jobpoll.FailureUnknown
		if failure.Code == "" {
			failure.Code = "request_timeout"
		}
	case ans.Status == 499:
		state = jobpoll.StateCanceled
	case failure.Kind != jobpoll.FailureUnknown:
	case ans.Status < 500:
		failure.Kind = jobpoll.FailureRejected
	default:
		failure.Kind = jobpoll.FailureFault
	}
	return jobpoll.Report{State: state, RawStatus: done.RawStatus, Hint: ans.Hint, Failure: failure}, nil
}

// falError is the body of a result that is an error: a flat one of the
// infrastructure, or a list of what is wrong with the input.
type falError struct {
	Detail json.RawMessage `json:"detail"`
	Type   Text            `json:"error_type"`
}

const (
	maxDetails = 3  // details that make the message
	maxFalCode = 64 // bytes of a code that is not known
)

// read gives the code and the text.
func (v *falError) read() (code, text string) {
	code = string(v.Type)
	var list []struct {
		Loc  []Text `json:"loc"`
		Msg  Text   `json:"msg"`
		Type Text   `json:"type"`
	}
	if json.Unmarshal(v.Detail, &list) != nil || len(list) == 0 {
		var flat Text
		_ = json.Unmarshal(v.Detail, &flat) // Text gives no error, and no detail has no text
		return code, string(flat)
	}
	if code == "" {
		code = string(list[0].Type)
	}
	var b strings.Builder
	for i, d := range list[:min(len(list), maxDetails)] {
		if i > 0 {
			b.WriteString("; ")
		}
		for j, l := range d.Loc {
			if j > 0 {
				b.WriteByte('.')
			}
			b.WriteString(string(l))
		}
		if len(d.Loc) > 0 {
			b.WriteString(": ")
		}
		b.WriteString(string(d.Msg))
	}
	return code, cut([]byte(b.String()))
}
