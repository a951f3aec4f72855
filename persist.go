package jobpoll

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// recordVersion is written into the Data of each Record.
const recordVersion = 1

// DefaultRetention is the default of Config.Retention.
const DefaultRetention = 30 * 24 * time.Hour

// storedJob is the Data of a RecordJob. All its times are wall times.
type storedJob struct {
	Version  int       `json:"v"`
	Job      Job       `json:"job"`
	Track    Track     `json:"track"`
	Rules    StopRules `json:"rules"`
	Polls    int       `json:"polls,omitempty"`
	FirstAt  time.Time `json:"first_at,omitzero"`
	LastAt   time.Time `json:"last_at,omitzero"`
	DueAt    time.Time `json:"due_at,omitzero"`
	Cause    Cause     `json:"cause,omitempty"` // of the look at DueAt
	Report   *Report   `json:"report,omitempty"`
	Word     string    `json:"word,omitempty"`
	Fetching bool      `json:"fetching,omitempty"`
	Canceled bool      `json:"canceled,omitempty"` // the provider has taken a cancellation
	Outcome  *Outcome  `json:"outcome,omitempty"`
	Attempts int32     `json:"attempts,omitempty"`
	Told     bool      `json:"told,omitempty"`
	Again    *Job      `json:"again,omitempty"`  // watched anew once it was told
	Events   []eventID `json:"events,omitempty"` // of notices, the latest

	rev uint64
}

// jobRecordID is the id of a job's record. The length in front makes it one to
// one for any route and id.
func jobRecordID(k Key) string { return fmt.Sprintf("%d:%s/%s", len(k.Route), k.Route, k.ID) }

// jobRecordKey is the job of such an id.
func jobRecordKey(id string) (Key, bool) {
	length, rest, _ := strings.Cut(id, ":")
	n, err := strconv.Atoi(length)
	if err != nil || n < 0 || n >= len(rest) || rest[n] != '/' || length != strconv.Itoa(n) {
		return Key{}, false
	}
	return Key{Route: rest[:n], ID: rest[n+1:]}, true
}

// encode makes the stored form of a record.
func (p *Poller) encode(r *record) Record {
	shift := p.line.shift()
	s := storedJob{
		Version: recordVersion, Job: r.job, Track: r.track.shifted(shift), Rules: *r.rules, Polls: r.polls,
		FirstAt: toWall(r.firstAt, shift), LastAt: toWall(r.lastAt, shift), DueAt: saneTime(toWall(r.planned, shift)), Cause: r.cause,
		Word: r.word, Canceled: r.canceled, Outcome: r.outcome, Attempts: r.attempts, Told: r.stage == stageForget,
		Events: p.heard[r.handle()],
	}
	if r.again != nil {
		s.Again = &r.again.rec.job
	}
	if r.outcome == nil {
		s.Report = r.report
		if r.success != nil {
			s.Report, s.Fetching = r.success, true
		}
	}
	r.rev++
	rec := Record{Kind: RecordJob, ID: jobRecordID(r.job.Key()), Route: r.job.Route, Rev: r.rev, UpdatedAt: toWall(p.line.last(), shift)}
	if s.Told {
		rec.ExpiresAt = rec.UpdatedAt.Add(p.retention)
	}
	data, err := marshal(&s)
	if err != nil {
		// Nothing that normalize lets through does this; keep the job itself.
		s.Report, s.Track = nil, Track{}
		if s.Outcome != nil {
			o := *s.Outcome
			o.Report.Output, o.Report.OutputDropped = nil, true
			s.Outcome = &o
		}
		if data, err = marshal(&s); err != nil {
			data, _ = marshal(&storedJob{Version: recordVersion, Job: r.job, Rules: *r.rules}) // no Data would delete it
		}
	}
	rec.Data = data
	return rec
}

// marshal is json.Marshal that leaves <, > and & as they are, so that an output
// comes back as the same bytes.
func marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// shifted carries the times of a memory from one timeline to another.
func (t Track) shifted(by time.Duration) Track {
	if by == 0 {
		return t
	}
	for _, at := range [...]*Stamp{&t.FirstAt, &t.LastAt, &t.GoodAt, &t.AdvancedAt, &t.QueuedAt, &t.RunningAt,
		&t.OriginAt, &t.FinishAt, &t.NotBefore, &t.MissingAt, &t.UnknownAt, &t.AuthAt} {
		if *at != 0 {
			*at = at.Add(by)
		}
	}
	return t
}

// storeContext ends with a Run's context for the store, and is for the rest
// the one of the work that needs the store.
type storeContext struct {
	context.Context
	work context.Context
}

func (c *storeContext) Value(key any) any { return c.work.Value(key) }

func (c *storeContext) Done() <-chan struct{} {
	c.work.Done() // a test clock sees from it that the work may wait
	return c.Context.Done()
}

// putPacing is what put is told of a batch that only brings up to date where
// jobs are. All others are steps in the life of a job.
const putPacing = "pacing"

// storeTimeout bounds one Put, and the wait for the next record of a Load.
const storeTimeout = 30 * time.Second

// put writes a batch under the fence of our lease and reports a failure.
func (p *Poller) put(ctx context.Context, what string, batch ...Record) error {
	fence := p.tenancy.fence.Load()
	for i := range batch {
		batch[i].Fence = fence
	}
	bounded, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	timer := p.line.clock.AfterFunc(storeTimeout, func() { cancel(errTimeout) })
	defer timer.Stop()
	err := p.guard(Key{}, "Store.Put", func() error { return p.store.Put(bounded, batch) })
	switch {
	case err == nil:
		p.meters.written(what, len(batch))
		p.storeWorked(opAll)
	case ctx.Err() != nil: // that may be all there is to it
		p.storeFailed(opPut, what, err)
	default:
		p.storeDown(opPut, what, err)
	}
	if errors.Is(err, ErrNotOwner) {
		p.deposed(fence)
	}
	return err
}

func (p *Poller) storeFailed(op storeOp, what string, err error) {
	p.meters.storeErrors.Add(1)
	p.log.Error("the store failed", "op", op.String(), "what", what, "error", scrubErr(err))
	if f := p.hooks.StoreFailed; f != nil {
		p.hook("StoreFailed", Key{}, func() { f(StoreEvent{Op: op.String(), Err: err}) })
	}
}

// ended gives the outcome of a stored job whose watch has ended for good.
func (s *storedJob) ended() *Outcome {
	if s != nil && s.Outcome != nil && s.Told && !s.Outcome.Reason.Resumable() {
		return s.Outcome
	}
	return nil
}

// read gets one record, if there is one, and reports a failure.
func (p *Poller) read(ctx context.Context, what string, kind RecordKind, id string) (rec Record, found bool, err error) {
	err = p.guard(Key{}, "Store.Get", func() (err error) { rec, err = p.store.Get(ctx, kind, id); return err })
	switch {
	case err == nil || errors.Is(err, ErrNotFound):
		p.storeWorked(opGet | opLoad)
		return rec, err == nil, nil
	case ctx.Err() != nil:
		p.storeFailed(opGet, what, err)
	default:
		p.storeDown(opGet, what, err)
	}
	return Record{}, false, err
}

// stored gives what the store holds of a job that is not watched; nil: nothing.
func (p *Poller) stored(ctx context.Context, k Key) (*storedJob, error) {
	if p.store == nil {
		return nil, nil
	}
	p.mu.Lock()
	known := p.find(k) != nil || p.routes[k.Route] == nil
	p.mu.Unlock()
	if known {
		return nil, nil
	}
	rec, found, err := p.read(ctx, "job", RecordJob, jobRecordID(k))
	if err == nil && !found {
		return nil, nil
	}
	var s storedJob
	if err == nil {
		if s, err = decodeJob(rec); err != nil {
			p.storeFailed(opGet, "job", err)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("jobpoll: %s: not watched, the store could not be read: %w", k, err)
	}
	return &s, nil
}

// noticeID is the id of a parked notice's record: that of the event, or where
// the sender gave none, what it tells.
func noticeID(n *Notice) string {
	id := fmt.Sprintf("%d:%s/%s/%s/", len(n.Key.Route), n.Key.Route, n.Key.ID, n.ClientKey)
	if n.EventID != "" {
		return id + n.EventID
	}
	return fmt.Sprintf("%s:%s/%s", id, n.Report.State, n.Trust)
}

// noticeRecord is the stored form of a parked notice, or its deletion.
func noticeRecord(n Notice, at time.Time, keep bool) Record {
	rec := Record{Kind: RecordNotice, ID: noticeID(&n), Route: n.Key.Route, UpdatedAt: at}
	if keep {
		rec.Data, _ = marshal(n)
		rec.ExpiresAt = at.Add(earlyLife)
	}
	return rec
}

// writeBehind leaves a record, or the deletion of one, to the next flush. It is
// for what a crash may undo. Called under the lock.
func (p *Poller) writeBehind(rec Record) {
	if p.store != nil {
		p.fallBehind()
		p.behind.add(rec)
	}
}

// dropNotice deletes a parked notice from the store: if that fails it expires
// there. Called under the lock.
func (p *Poller) dropNotice(n Notice) {
	p.writeBehind(noticeRecord(n, time.Time{}, false))
}
