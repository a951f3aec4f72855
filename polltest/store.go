package polltest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jobpoll/jobpoll"
)

// Stores is what TestStore has to know of a Store: how to make one.
type Stores struct {
	// New makes a new, empty store, as a service does, whose records expire and
	// whose lease lapses on the clock. It is called once for each check. Required.
	New func(clock jobpoll.Clock) (jobpoll.Store, error)

	// Again opens the storage of a store that is in use a second time, as another
	// process would. Nil: what needs it is not tried.
	Again func(s jobpoll.Store) (jobpoll.Store, error)

	// Close ends the use of a store that New or Again made. Nil: nothing is to be
	// done.
	Close func(s jobpoll.Store) error

	// Skip has the names of checks that are not made. Each skipped check is a
	// risk that you take: say why beside it.
	Skip []string

	// Logf is told what was not tried, and why. T.Logf fits. Nil: nobody is.
	Logf func(format string, args ...any)
}

// TestStore tries a Store against what jobpoll expects of one, and of a Leaser,
// if it is one: see jobpoll.Store. It returns nil, or Findings, which are all
// that was found, each with what was tried and why it matters:
//
//	err := polltest.TestStore(polltest.Stores{
//		New: func(c jobpoll.Clock) (jobpoll.Store, error) { return mystore.Open(t.Context(), newDatabase(t), c) },
//	})
//	if err != nil {
//		t.Error(err)
//	}
//
// Stores that lack what is required, and a New that fails, are other errors. Run
// the test with -race too: many calls at once are a part of it. It writes some
// ten thousand records and some ten MB, and takes as long as the store takes for
// that. A store that hangs is left behind after some seconds, and told.
func TestStore(s Stores) error { return testStore(s, 30*time.Second) }

// StoreChecks lists the names of the checks of TestStore, for Stores.Skip.
func StoreChecks() []string {
	var names []string
	for _, c := range allStoreChecks() {
		names = append(names, c.name)
	}
	return names
}

func (s *Stores) validate() error {
	var errs []error
	if s.New == nil {
		errs = append(errs, errors.New("polltest: Stores.New is missing: it makes the store that is tried"))
	}
	for _, name := range s.Skip {
		if !slices.Contains(StoreChecks(), name) {
			errs = append(errs, fmt.Errorf("polltest: Stores.Skip has %q, which is no check; the checks are %s", name, strings.Join(StoreChecks(), ", ")))
		}
	}
	return errors.Join(errs...)
}

// storeCheck is one thing that is tried, with a store of its own.
type storeCheck struct {
	name     string
	why, see string
	leaser   bool // only of a Leaser
	again    bool // needs Stores.Again
	run      func(s *storeStage)
}

func allStoreChecks() []storeCheck {
	return slices.Concat(storeRecordChecks, storeLoadChecks, storeCrowdChecks, storeLeaseChecks, storeAgainChecks)
}

// testStore is TestStore. A call takes less than patience.
func testStore(s Stores, patience time.Duration) error {
	if err := s.validate(); err != nil {
		return err
	}
	if s.Logf == nil {
		s.Logf = func(string, ...any) {}
	}
	var faults Findings
	for _, c := range allStoreChecks() {
		stage := &storeStage{kit: &s, check: c, clock: NewClock(time.Time{}), patience: patience, faults: &faults}
		hung, err := stage.perform()
		if err != nil {
			return fmt.Errorf("polltest: %s: %w", c.name, err)
		}
		if hung {
			s.Logf("polltest: what follows %s was not tried: a call has not returned", c.name)
			break
		}
	}
	if len(faults) == 0 {
		return nil
	}
	return faults
}

// storeStage is one store and what is tried with it.
type storeStage struct {
	kit      *Stores
	check    storeCheck
	clock    *Clock
	store    jobpoll.Store
	leaser   jobpoll.Leaser
	patience time.Duration
	faults   *Findings
	writes   int // of putFenced
}

// storeStop ends a check that cannot go on.
type storeStop struct{ hung bool }

func (s *storeStage) perform() (hung bool, err error) {
	if slices.Contains(s.kit.Skip, s.check.name) {
		return false, s.untried("it is in Stores.Skip")
	}
	if s.check.again && s.kit.Again == nil {
		return false, s.untried("there is no Stores.Again")
	}
	if s.store, err = s.kit.New(s.clock); err != nil {
		return false, fmt.Errorf("Stores.New: %w", err)
	}
	if s.store == nil {
		return false, errors.New("Stores.New gave no store")
	}
	defer func() {
		if !hung {
			err = errors.Join(err, s.closeStore(s.store))
		}
	}()
	var ok bool
	if s.leaser, ok = s.store.(jobpoll.Leaser); !ok && s.check.leaser {
		return false, s.untried("the store is no jobpoll.Leaser")
	}
	defer func() {
		if v := recover(); v != nil {
			stop, ours := v.(storeStop)
			if !ours {
				panic(v)
			}
			hung = stop.hung
		}
	}()
	s.check.run(s)
	return false, nil
}

func (s *storeStage) untried(why string) error {
	s.kit.Logf("polltest: %s: not tried (no fault): %s", s.check.name, why)
	return nil
}

func (s *storeStage) closeStore(st jobpoll.Store) error {
	if s.kit.Close == nil {
		return nil
	}
	if err := s.kit.Close(st); err != nil {
		return fmt.Errorf("Stores.Close: %w", err)
	}
	return nil
}

// fault adds a finding of the check.
func (s *storeStage) fault(tried, did, want string) {
	*s.faults = append(*s.faults, &Finding{
		Check: s.check.name, Tried: tried, Did: clip(did), Want: want, Why: s.check.why, See: s.check.see, ofStore: true,
	})
}

// must ends the check with a finding unless ok.
func (s *storeStage) must(ok bool, tried, did, want string) {
	if !ok {
		s.fault(tried, did, want)
		panic(storeStop{})
	}
}

// call makes one call of the store. It returns also where the store panics; one
// that hangs ends the kit.
func (s *storeStage) call(tried string, f func(ctx context.Context) error) error {
	return s.callUntil(context.Background(), tried, f)
}

func (s *storeStage) callUntil(ctx context.Context, tried string, f func(ctx context.Context) error) error {
	err, hung := s.attempt(ctx, f)
	if hung {
		s.fault(tried, "did not return, not even when its context had ended", "an end soon after that of the context")
		panic(storeStop{hung: true})
	}
	if p := (*storePanic)(nil); errors.As(err, &p) {
		s.must(false, tried, p.Error(), "no panic")
	}
	return err
}

// storePanic is the panic of a store, as an error.
type storePanic struct{ value any }

func (p *storePanic) Error() string { return fmt.Sprintf("panicked: %v", p.value) }

// attempt makes a call, for several goroutines at once.
func (s *storeStage) attempt(ctx context.Context, f func(ctx context.Context) error) (err error, hung bool) {
	bounded, cancel := context.WithTimeout(ctx, s.patience)
	defer cancel()
	result := make(chan error, 1)
	go func() {
		defer func() {
			if v := recover(); v != nil {
				result <- &storePanic{v}
			}
		}()
		result <- f(bounded)
	}()
	select {
	case err := <-result:
		return err, false
	case <-bounded.Done():
	}
	last, stop := context.WithTimeout(context.Background(), s.patience/4)
	defer stop()
	select {
	case err := <-result:
		return err, false
	case <-last.Done():
		return nil, true
	}
}

// put writes, which must go well.
func (s *storeStage) put(tried string, batch ...jobpoll.Record) {
	err := s.call(tried, func(ctx context.Context) error { return s.store.Put(ctx, batch) })
	s.must(err == nil, tried, fmt.Sprintf("returned the error %v", err), "no error")
}

// get reads a record; ok is false where the store has none.
func (s *storeStage) get(tried string, kind jobpoll.RecordKind, id string) (rec jobpoll.Record, ok bool) {
	err := s.call(tried, func(ctx context.Context) (err error) { rec, err = s.store.Get(ctx, kind, id); return err })
	if errors.Is(err, jobpoll.ErrNotFound) {
		return rec, false
	}
	s.must(err == nil, tried, fmt.Sprintf("returned the error %v", err), "the record, or an error that matches jobpoll.ErrNotFound")
	return rec, true
}

// load reads all records.
func (s *storeStage) load(tried string) []jobpoll.Record {
	var all []jobpoll.Record
	err := s.call(tried, func(ctx context.Context) error {
		all = nil
		for rec, err := range s.store.Load(ctx) {
			if err != nil {
				return err
			}
			all = append(all, rec)
		}
		return nil
	})
	s.must(err == nil, tried, fmt.Sprintf("Load ended with the error %v", err), "all records")
	return all
}

// same compares what was put and what came back.
func (s *storeStage) same(tried string, want, got jobpoll.Record) {
	if diff := recordDiff(want, got); diff != "" {
		s.fault(tried, "gave back "+diff, "the record as it was put")
	}
}

// recordDiff says how a record differs from the one that was put; times may have
// been cut to the microsecond.
func recordDiff(want, got jobpoll.Record) string {
	near := func(a, b time.Time) bool {
		return a.IsZero() == b.IsZero() && a.Sub(b).Abs() < time.Microsecond
	}
	utc := func(t time.Time) bool { return t.IsZero() || t.Location() == time.UTC }
	switch {
	case got.Kind != want.Kind:
		return fmt.Sprintf("the kind %d in place of %d", got.Kind, want.Kind)
	case got.ID != want.ID:
		return fmt.Sprintf("the ID %q in place of %q", clip(got.ID), clip(want.ID))
	case got.Route != want.Route:
		return fmt.Sprintf("the Route %q in place of %q", clip(got.Route), clip(want.Route))
	case got.Rev != want.Rev:
		return fmt.Sprintf("the Rev %d in place of %d", got.Rev, want.Rev)
	case !near(got.UpdatedAt, want.UpdatedAt) || !near(got.ExpiresAt, want.ExpiresAt):
		return fmt.Sprintf("UpdatedAt %v, ExpiresAt %v in place of %v, %v", got.UpdatedAt, got.ExpiresAt, want.UpdatedAt, want.ExpiresAt)
	case !utc(got.UpdatedAt) || !utc(got.ExpiresAt):
		return fmt.Sprintf("times that are not in UTC: %v, %v", got.UpdatedAt, got.ExpiresAt)
	case string(got.Data) != string(want.Data):
		return fmt.Sprintf("the Data %q (%d bytes) in place of %q (%d bytes)", clip(string(got.Data)), len(got.Data), clip(string(want.Data)), len(want.Data))
	case got.Data == nil:
		return "a Data that is nil"
	case got.Fence != 0:
		return fmt.Sprintf("the Fence %d", got.Fence)
	}
	return ""
}

// record makes a record of a job.
func (s *storeStage) record(id string, rev uint64, data string) jobpoll.Record {
	return jobpoll.Record{Kind: jobpoll.RecordJob, ID: id, Route: "conformance", Rev: rev, UpdatedAt: s.clock.Now().UTC(), Data: []byte(data)}
}
