package provider

import (
	"context"
	"encoding/json"
	"strings"
	"unicode/utf8"

	"github.com/jobpoll/jobpoll"
)

// How a task of Kling's is ordered, and found again of which the answer was lost:
// by the external_task_id that went along.

// klingPlaces are where a task is looked for of which only the caller's id is known:
// in the 3.x API, and at the endpoints of the first one that make most videos.
var klingPlaces = []string{"", KlingTextToVideo, "/v1/videos/image2video", "/v1/videos/multi-image2video"}

// Submit starts a task, by one POST that is never repeated. Order.Input must be a
// JSON object. Order.Path below "/v1/" is an endpoint of the first API, where the
// model goes into the input as model_name; any other ("/text-to-video/kling-3.0")
// is the 3.x API, which has the model in the path, and the webhook in options.
//
// Order.ClientKey goes along as the external_task_id, in the 3.x API in options,
// unless Input has one there. It has to be another for each task of the account.
// Where it is Job.ClientKey, as Send makes it, Lookup finds a task of which the id was
// never told.
func (p *Kling) Submit(ctx context.Context, o Order) (jobpoll.Job, jobpoll.Report, error) {
	if err := o.ready(); err != nil {
		return jobpoll.Job{}, jobpoll.Report{}, err
	}
	at := either(o.Path, KlingTextToVideo)
	first := strings.HasPrefix(at, klingFirst)
	values := map[string]string{}
	if first {
		values = map[string]string{"model_name": o.Model, "callback_url": o.Webhook}
	}
	body, err := flat(o.Input, values)
	if err == nil && !first && o.Webhook != "" {
		err = nested(body, "options", "callback_url", o.Webhook)
	}
	if err == nil && o.ClientKey != "" {
		err = klingOwn(body, first, o.ClientKey)
	}
	if err != nil {
		return jobpoll.Job{}, jobpoll.Report{}, err
	}
	ref := func(*Answer) string { return "" }
	if first {
		ref = func(*Answer) string { return at }
	}
	return p.c.submit(ctx, o, Request{URL: at, Header: o.Header, Body: body}, &klingReply{}, ref)
}

// klingOwn puts the caller's id into the body of an order, where it has none.
func klingOwn(body map[string]json.RawMessage, first bool, id string) error {
	if !utf8.ValidString(id) {
		return invalid("Order.ClientKey is not valid UTF-8")
	}
	if v := (walk{value: body[klingOwnID]}); v.hasText() {
		return nil
	}
	if !first {
		if textIn(body["options"], klingOwnID) {
			return nil
		}
		return nested(body, "options", klingOwnID, id)
	}
	raw, err := json.Marshal(id)
	body[klingOwnID] = raw
	return err
}

// nested puts a value into an object that is in body already, or not yet. The rest of
// the object stays as it is.
func nested(body map[string]json.RawMessage, object, name string, value any) error {
	var inner map[string]json.RawMessage
	if raw, ok := body[object]; ok && json.Unmarshal(raw, &inner) != nil {
		return invalid("Order.Input has a field %q that is no JSON object", object)
	}
	if inner == nil { // it is null, or not there
		inner = map[string]json.RawMessage{}
	}
	raw, err := json.Marshal(value)
	if err == nil {
		inner[name] = raw
		raw, err = json.Marshal(inner)
	}
	if err != nil {
		return invalid("Order: %w", err)
	}
	body[object] = raw
	return nil
}

// Lookup looks for a task by its id, or by Job.ClientKey where that was sent as the
// external_task_id. A task that is not found is FindingUnknown, never absent; without
// either there is nothing to look by: FindingImpossible. Of several tasks only one that
// tells the ClientKey is it; one with a comma is not looked for in the 3.x API, whose
// list would take it for two.
//
// Without an id it is looked for where Job.Ref says; without that too in the 3.x API
// and then, a call each, at the first API's text2video, image2video and
// multi-image2video. For another endpoint of the first API put its path into the Ref
// of the Submission's Job.
func (p *Kling) Lookup(ctx context.Context, lost jobpoll.Lost) (jobpoll.Finding, error) {
	return p.lookup(ctx, lost, klingPlaces)
}

// lookup is Lookup; places are where a task is that has neither id nor Ref.
func (p *Kling) lookup(ctx context.Context, lost jobpoll.Lost, places []string) (jobpoll.Finding, error) {
	job := lost.Job
	switch {
	case job.ID != "":
		return p.find(ctx, job, p.request(job, "task_ids", job.ID), &klingReply{want: job.ID})
	case job.ClientKey == "":
		return jobpoll.Finding{State: jobpoll.FindingImpossible}, nil
	case job.Ref != "":
		places = []string{job.Ref}
	}
	var failed error
	for _, job.Ref = range places {
		if !strings.HasPrefix(job.Ref, "/") && strings.Contains(job.ClientKey, ",") {
			continue // the list would take it for two
		}
		f, err := p.find(ctx, job, p.request(job, "external_task_ids", job.ClientKey), &klingReply{wantOwn: job.ClientKey})
		if f.State == jobpoll.FindingPresent {
			return f, nil
		}
		if err != nil && (failed == nil || kindOf(err) == jobpoll.ErrorTransient) {
			failed = err
		}
	}
	return jobpoll.Finding{}, failed
}

// find asks about a task that may not be there.
func (p *Kling) find(ctx context.Context, job jobpoll.Job, r Request, v *klingReply) (jobpoll.Finding, error) {
	rep, err := p.c.look(ctx, r, v)
	switch {
	case kindOf(err) == jobpoll.ErrorNoSuchJob, err != nil && v.code == "0":
		return jobpoll.Finding{}, nil // no such task, or none in the answer
	case err != nil:
		return jobpoll.Finding{}, err
	case v.id() == "":
		return jobpoll.Finding{}, nil
	}
	return jobpoll.Finding{State: jobpoll.FindingPresent, ID: v.id(), Ref: job.Ref, Report: rep}, nil
}
