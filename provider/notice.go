package provider

import (
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"strings"

	"github.com/jobpoll/jobpoll"
)

// noticed makes a Notice of what is said of a job, by the rules of a look. It
// is whole, and as good as a look, where a state is known and a look could not
// tell more: an end without an output is looked at again.
func noticed(id Text, rep jobpoll.Report) jobpoll.Notice {
	n := jobpoll.Notice{Key: jobpoll.Key{ID: string(id)}, Report: rep}
	noOutput := rep.Failure != nil && rep.Failure.Kind == jobpoll.FailureNoOutput
	if rep.State != jobpoll.StateUnknown && !noOutput {
		n.Trust = jobpoll.TrustAuthoritative
	}
	return n
}

// readNotice decodes the body of a delivery. A field of another type is nothing
// to lose a job over, where known tells that what matters is there.
func readNotice(body []byte, into any, known func() bool) error {
	err := json.Unmarshal(unmarked(body), into)
	var other *json.UnmarshalTypeError
	switch {
	case err == nil, errors.As(err, &other) && known():
		return nil
	case other != nil:
		return errors.New("jobpoll: the body of the webhook is not of the provider's making")
	}
	return errors.New("jobpoll: the body of the webhook is no JSON")
}

// ReplicateNotice makes a notice of a delivery of Replicate: the body is the
// prediction, as a look gives it. It is a Parser of package webhook, and the
// verifier to it is webhook.NewStandard with the secret of the account's.
//
// Replicate sends what webhook_events_filter asks for, and Submit asks for start
// and completed. Only that of the end is sent again, for about a minute.
//
// Source: https://replicate.com/docs/reference/webhooks
func ReplicateNotice(body []byte, _ http.Header) (jobpoll.Notice, error) {
	var v prediction
	if err := readNotice(body, &v, func() bool { return v.ID != "" }); err != nil {
		return jobpoll.Notice{}, err
	}
	rep, err := v.report(&Answer{Status: http.StatusOK, Body: body})
	if err != nil { // no status, or the output is gone: a look says which
		rep = jobpoll.Report{RawStatus: v.Status}
	}
	n := noticed(v.ID, rep)
	if n.At = rep.CompletedAt; n.At.IsZero() {
		n.At = rep.StartedAt
	}
	return n, nil
}

// falDelivery is the body of fal's webhook.
type falDelivery struct {
	ID           Text            `json:"request_id"`
	Status       string          `json:"status"`
	Payload      json.RawMessage `json:"payload"`
	Error        Text            `json:"error"`
	PayloadError Text            `json:"payload_error"`
}

// FalNotice makes a notice of a delivery of fal's. It is a Parser of package
// webhook, and the verifier to it is webhook.NewFal.
//
// The body holds the result, or what the call for it would be refused with. One
// that says that the payload did not fit, and an ERROR without any, tell of the
// delivery and not of the job: those are hints.
//
// Source: https://fal.ai/docs/documentation/model-apis/inference/webhooks.md
func FalNotice(body []byte, _ http.Header) (jobpoll.Notice, error) {
	var v falDelivery
	if err := readNotice(body, &v, func() bool { return v.ID != "" }); err != nil {
		return jobpoll.Notice{}, err
	}
	rep := jobpoll.Report{RawStatus: v.Status}
	switch {
	case v.PayloadError != "", !HasOutput(v.Payload):
	case strings.EqualFold(v.Status, "OK") && v.Error == "":
		rep.State, rep.Output = jobpoll.StateSucceeded, v.Payload
	case strings.EqualFold(v.Status, "ERROR"):
		rep.State, rep.Failure = v.failure()
	}
	return noticed(v.ID, rep), nil
}

// failure reads the payload of an ERROR, by the rules of a result that is one.
func (v *falDelivery) failure() (jobpoll.State, *jobpoll.Failure) {
	var detail falError
	_ = json.Unmarshal(v.Payload, &detail) // another shape has no detail
	code, text := detail.read()
	if text == "" {
		text = string(v.Error)
	}
	state, failure := falFailure(code, text)
	if failure.Kind != jobpoll.FailureUnknown || state == jobpoll.StateCanceled {
		return state, failure
	}
	switch status := statusIn(string(v.Error)); {
	case status == 499:
		state = jobpoll.StateCanceled
	case status >= 500:
		failure.Kind = jobpoll.FailureFault
	case status == http.StatusBadRequest, status == http.StatusUnprocessableEntity:
		failure.Kind = jobpoll.FailureRejected
	}
	return state, failure
}

// statusIn reads the status that ends a text as "Invalid status code: 422"; 0 if
// it is none.
func statusIn(text string) int {
	_, digits, ok := strings.Cut(text, "status code: ")
	status, err := strconv.Atoi(strings.TrimSpace(digits))
	if !ok || err != nil || status < 400 || status > 599 {
		return 0
	}
	return status
}

// AtlasNotice makes a notice of a delivery of Atlas Cloud's. It is a Parser of
// package webhook, and the verifier to it is webhook.NewAtlas.
//
// The word of the payload decides, as a job that failed comes under an outer OK
// too. A delivery without a payload names no job.
//
// Source: https://atlascloud.ai/docs/en/webhooks
func AtlasNotice(body []byte, _ http.Header) (jobpoll.Notice, error) {
	var v struct {
		Session Text            `json:"session_id"`
		Error   Text            `json:"error"`
		Payload json.RawMessage `json:"payload"`
	}
	if err := readNotice(body, &v, func() bool { return len(v.Payload) > 0 }); err != nil {
		return jobpoll.Notice{}, err
	}
	var job atlasAnswer
	if len(v.Payload) > 0 {
		d := &job.Data
		if err := readNotice(v.Payload, d, func() bool { return d.ID != "" }); err != nil {
			return jobpoll.Notice{}, err
		}
		if d.Error == "" {
			d.Error = v.Error
		}
	}
	rep, err := job.report(&Answer{Status: http.StatusOK, Body: body})
	if err != nil { // no status: a look says more
		rep = jobpoll.Report{}
	}
	n := noticed(job.Data.ID, rep)
	n.EventID = string(v.Session)
	return n, nil
}

// unwrapped makes a notice of a body that is the job, as a look gives it.
func unwrapped(body []byte, v receipt) (jobpoll.Notice, error) {
	if err := readNotice(body, v, func() bool { return v.id() != "" }); err != nil {
		return jobpoll.Notice{}, err
	}
	rep, err := v.report(&Answer{Status: http.StatusOK, Body: body})
	if err != nil { // no status, or none that is an answer: a look says more
		rep = jobpoll.Report{RawStatus: rep.RawStatus}
	}
	return noticed(Text(v.id()), rep), nil
}

// event makes a notice of a thin event, which names a job and no more.
func event(body []byte) (jobpoll.Notice, error) {
	var v struct {
		ID   Text   `json:"id"`
		Type string `json:"type"`
		Data struct {
			ID Text `json:"id"`
		} `json:"data"`
	}
	if err := readNotice(body, &v, func() bool { return v.Data.ID != "" }); err != nil {
		return jobpoll.Notice{}, err
	}
	n := noticed(v.Data.ID, jobpoll.Report{RawStatus: v.Type})
	n.EventID = string(v.ID)
	return n, nil
}
