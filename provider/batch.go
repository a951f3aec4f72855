package provider

import (
	"bytes"
	"context"
	"encoding/json"
	"net/url"
	"reflect"
	"strconv"

	"github.com/jobpoll/jobpoll"
)

// What the adapters that are a jobpoll.BatchChecker have in common.

// mostListed is how many ids go into the query of one list, as most
// proxies take a URL of no more than 8 KiB.
const mostListed = 50

// idsOf are the ids of the jobs that a list is asked for: those that may be in it,
// and have one.
func idsOf(jobs []jobpoll.Job, most int, listed func(jobpoll.Job) bool) ([]string, error) {
	if len(jobs) > most {
		return nil, invalid("CheckBatch of %d jobs: at most %d go into one call, which is MaxBatch", len(jobs), most)
	}
	var ids []string
	for _, job := range jobs {
		if job.ID != "" && listed(job) {
			ids = append(ids, job.ID)
		}
	}
	return ids, nil
}

// checkListed asks about many jobs by a list that takes their ids for a filter, and
// has pages. whole reads an answer that is no list, empty makes the struct of an item.
func (c *Client) checkListed(ctx context.Context, path string, jobs []jobpoll.Job, most int, whole reply, empty func() receipt) (map[string]jobpoll.Result, error) {
	ids, err := idsOf(jobs, most, func(jobpoll.Job) bool { return true })
	if len(ids) == 0 {
		return nil, err
	}
	var list struct {
		Items jobList `json:"items"`
	}
	ans, err := c.Do(ctx, Request{URL: path, Query: url.Values{
		"filter.task_ids": ids, "page_num": {"1"}, "page_size": {strconv.Itoa(most)},
	}}, &list)
	if err := forgive(err, list.Items != nil); err != nil {
		return nil, err
	}
	if len(list.Items) == 0 {
		ans.decode(whole)
		if err := whole.refusal(&ans); err != nil {
			return nil, err
		}
	}
	if list.Items == nil {
		return nil, ans.Errorf(jobpoll.ErrorTransient, "an answer without a list")
	}
	return list.Items.results(&ans, ids, empty), nil
}

// lookupListed looks for one job in such a list, by its id. What is not found is
// FindingUnknown, never absent, as lists lag and end somewhere; of one that has ended
// nothing is told, as a list may leave its output away: a look has the last word.
func (c *Client) lookupListed(ctx context.Context, path string, job jobpoll.Job, most int, whole reply, empty func() receipt) (jobpoll.Finding, error) {
	if job.ID == "" {
		return jobpoll.Finding{State: jobpoll.FindingImpossible}, nil
	}
	all, err := c.checkListed(ctx, path, []jobpoll.Job{job}, most, whole, empty)
	got, there := all[job.ID]
	switch {
	case kindOf(err) == jobpoll.ErrorNoSuchJob:
		return jobpoll.Finding{}, nil
	case err != nil || !there:
		return jobpoll.Finding{}, err
	case got.Err != nil || got.Report.State.Terminal():
		got.Report = jobpoll.Report{Hint: got.Report.Hint}
	}
	return jobpoll.Finding{State: jobpoll.FindingPresent, ID: job.ID, Report: got.Report}, nil
}

// jobList is the part of an answer that tells of many jobs. Each is decoded by
// itself, so that an odd one harms no other.
type jobList []json.RawMessage

// mostParts is how many parts of a list are read, which is more than any page has.
const mostParts = 1000

// UnmarshalJSON reads no more than mostParts.
func (l *jobList) UnmarshalJSON(raw []byte) error {
	if len(raw) == 0 || raw[0] != '[' {
		if string(raw) == "null" {
			return nil
		}
		return &json.UnmarshalTypeError{Value: "no list", Type: reflect.TypeFor[jobList]()}
	}
	*l = jobList{}
	parts := json.NewDecoder(bytes.NewReader(raw))
	_, err := parts.Token()
	for err == nil && len(*l) < mostParts && parts.More() {
		var one json.RawMessage
		if err = parts.Decode(&one); err == nil {
			*l = append(*l, one)
		}
	}
	return err
}

// results reads what the list tells of those jobs that were asked for; empty makes
// the struct of one. Jobs that are not in it are not in the results either: that
// the provider does not know them, that it lists them no more or that the page was
// too short is for a look of their own to tell.
func (l jobList) results(ans *Answer, asked []string, empty func() receipt) map[string]jobpoll.Result {
	all := make(map[string]jobpoll.Result, len(asked))
	wanted := make(map[string]bool, len(asked))
	for _, id := range asked {
		wanted[id] = true
	}
	for _, raw := range l {
		v := empty()
		err := json.Unmarshal(raw, v)
		id := v.id()
		if !wanted[id] {
			continue
		}
		wanted[id] = false // what a page tells first is the newest
		one := *ans
		one.Body = raw // as the evidence of an error
		if err != nil {
			err = one.Errorf(jobpoll.ErrorTransient, "a part of the list: %w", err)
		}
		rep, err := told(&one, err, v)
		all[id] = jobpoll.Result{Report: rep, Err: err}
	}
	return all
}
