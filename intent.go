package jobpoll

import (
	"context"
	"time"
)

// Intent makes the Record that a job begins with, to be written into the Store in
// a transaction of one's own: sqlstore.Store.Enlist does that. Work that is to be
// paid for is then on record if and only if the order for it is. now is the time
// of the record, UTC wall time; zero is no time.
//
// Without an ID the job is one that waits to be sent: its ClientKey is required.
// Call Submit with the same Route and ClientKey after the commit. If the process
// dies before that, the next one tells OnStop of it (ReasonNotSent), and it is
// safe to submit.
//
// With an ID the job is one to watch. Call Watch after the commit; if the process
// dies before that, the next one watches it.
//
// Only records that are not there yet may be written so: one that is, is of a job
// that was submitted or watched before.
func Intent(job Job, now time.Time) (Record, error) {
	rec := Record{Route: job.Route, Rev: 1, UpdatedAt: now.Round(0).UTC()}
	var err error
	if job.ID == "" {
		s := Submission{Job: job, Send: func(context.Context) (Sent, error) { return Sent{}, ErrNotSent }}
		if err := s.faults(); err != nil {
			return Record{}, err
		}
		rec.Kind, rec.ID = RecordSubmission, job.ClientKey
		rec.Data, err = marshal(&storedSubmission{Version: submissionVersion, Job: job, State: SubmissionWaiting})
		return rec, err
	}
	if job.SubmittedAt.IsZero() {
		job.SubmittedAt = rec.UpdatedAt
	}
	if err := job.faults(); err != nil {
		return Record{}, err
	}
	rec.Kind, rec.ID = RecordJob, jobRecordID(job.Key())
	rec.Data, err = marshal(&storedJob{Version: recordVersion, Job: job})
	return rec, err
}
