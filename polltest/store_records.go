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

const storeSee = "go doc jobpoll.Store"

// storeRecordChecks try what becomes of records.
var storeRecordChecks = []storeCheck{{
	name: "round-trip", see: "go doc jobpoll.Record",
	why: "a job goes on after a restart from exactly what was stored",
	run: checkStoreRoundTrip,
}, {
	name: "not-found", see: storeSee,
	why: "a job that is not there is watched anew; an error that cannot be told from a failing store refuses it",
	run: checkStoreNotFound,
}, {
	name: "replace", see: storeSee,
	why: "what is left over of an older state contradicts the newer",
	run: checkStoreReplace,
}, {
	name: "delete", see: storeSee,
	why: "what comes back after it was deleted is told again",
	run: checkStoreDelete,
}, {
	name: "batch", see: storeSee,
	why: "the Poller writes what belongs together in one Put",
	run: checkStoreBatch,
}, {
	name: "ids", see: "go doc jobpoll.Record",
	why: "ids come from providers: two that a store takes for one are two jobs of which one is lost",
	run: checkStoreIDs,
}, {
	name: "kinds", see: storeSee,
	why: "a newer version of jobpoll writes kinds of record that the store has never heard of",
	run: checkStoreKinds,
}, {
	name: "bytes", see: "go doc jobpoll.Record",
	why: "an output is given to the user as the same bytes, whether it comes from a look or from the store",
	run: checkStoreBytes,
}, {
	name: "large", see: storeSee,
	why: "outputs have some MB, and a batch has 128 records",
	run: checkStoreLarge,
}, {
	name: "times", see: "go doc jobpoll.Record",
	why: "waits, limits and expiry are counted from stored times",
	run: checkStoreTimes,
}, {
	name: "expiry", see: storeSee,
	why: "what was told is kept for a while and no longer; what has not expired is needed",
	run: checkStoreExpiry,
}, {
	name: "no-sharing", see: storeSee,
	why: "buffers are used again: a store that keeps or gives out its own is changed behind its back",
	run: checkStoreNoSharing,
}, {
	name: "context", see: storeSee,
	why: "a shutdown waits for the store as long as its calls last",
	run: checkStoreContext,
}}

func checkStoreRoundTrip(s *storeStage) {
	rec := s.record("1:fal/abc", 7, `{"v":1,"job":{"route":"fal","id":"abc"}}`)
	rec.ExpiresAt = rec.UpdatedAt.Add(time.Hour)
	rec.Route = "fal/ü"
	s.put("Put of a record", rec)
	got, ok := s.get("Get of it", rec.Kind, rec.ID)
	s.must(ok, "Get of a record that was put", "told that there is none", "the record")
	s.same("Put, then Get", rec, got)
	all := s.load("Load")
	s.must(len(all) == 1, "Put of one record, then Load", fmt.Sprintf("gave %d records", len(all)), "one")
	s.same("Put, then Load", rec, all[0])
}

func checkStoreNotFound(s *storeStage) {
	s.put("Put of a job", s.record("a", 1, `{}`))
	for _, c := range []struct {
		what string
		kind jobpoll.RecordKind
		id   string
	}{{"an ID that is not there", jobpoll.RecordJob, "b"}, {"the ID of a job as a notice", jobpoll.RecordNotice, "a"}, {"an empty ID", jobpoll.RecordJob, ""}} {
		err := s.call("Get of "+c.what, func(ctx context.Context) error { _, err := s.store.Get(ctx, c.kind, c.id); return err })
		if !errors.Is(err, jobpoll.ErrNotFound) {
			s.fault("Get of "+c.what, fmt.Sprintf("returned the error %v", err), "an error that matches jobpoll.ErrNotFound")
		}
	}
}

func checkStoreReplace(s *storeStage) {
	old := s.record("a", 9, `{"long":"`+strings.Repeat("x", 1000)+`"}`)
	old.ExpiresAt = old.UpdatedAt.Add(time.Hour)
	s.put("Put", old)
	s.clock.Advance(time.Second)
	for _, rev := range []uint64{10, 3} { // a store does not compare them
		now := s.record("a", rev, `{}`)
		now.Route = ""
		s.put("Put of the same key", now)
		got, ok := s.get("Get", now.Kind, now.ID)
		s.must(ok, "two Puts of one key, then Get", "told that there is none", "the later record")
		s.same(fmt.Sprintf("Put of another record (Rev %d) of a key with Rev %d", rev, old.Rev), now, got)
		old.Rev = rev
	}
	if n := len(s.load("Load")); n != 1 {
		s.fault("several Puts of one key, then Load", fmt.Sprintf("gave %d records", n), "one")
	}
}

func checkStoreDelete(s *storeStage) {
	rec := s.record("a", 1, `{}`)
	s.put("Put of two records", rec, s.record("b", 1, `{}`))
	gone := rec
	gone.Data = nil
	for _, what := range []string{"Put with nil Data", "the same once more", "and once more"} {
		s.put(what, gone)
		if _, ok := s.get("Get", rec.Kind, rec.ID); ok {
			s.fault(what+", then Get", "gave the record", "jobpoll.ErrNotFound")
		}
	}
	if n := len(s.load("Load")); n != 1 {
		s.fault("Put of two, one deleted, then Load", fmt.Sprintf("gave %d records", n), "one")
	}
	s.put("Put of a key that was deleted", rec)
	if got, ok := s.get("Get", rec.Kind, rec.ID); ok {
		s.same("Put of a key that was deleted, then Get", rec, got)
	} else {
		s.fault("Put of a key that was deleted, then Get", "told that there is none", "the record")
	}
	empty := s.record("c", 1, "")
	s.put("Put with a Data that is empty and not nil", empty)
	if _, ok := s.get("Get", empty.Kind, empty.ID); !ok {
		s.fault("Put with a Data that is empty and not nil", "deleted it", "a record without data")
	}
}

func checkStoreBatch(s *storeStage) {
	s.put("Put of an empty batch")
	err := s.call("Put of a nil batch", func(ctx context.Context) error { return s.store.Put(ctx, nil) })
	if err != nil {
		s.fault("Put of a nil batch", fmt.Sprintf("returned the error %v", err), "no error")
	}
	gone := func(id string) jobpoll.Record { return jobpoll.Record{Kind: jobpoll.RecordJob, ID: id} }
	s.put("Put of several of one key",
		s.record("a", 1, `"old"`), s.record("b", 1, `{}`), s.record("c", 1, `{}`),
		s.record("a", 2, `"new"`), gone("b"), gone("c"), s.record("c", 2, `"back"`))
	for id, want := range map[string]string{"a": `"new"`, "b": "", "c": `"back"`} {
		got, ok := s.get("Get", jobpoll.RecordJob, id)
		if did := string(got.Data); ok != (want != "") || did != want {
			s.fault("Put of a batch with one key several times", fmt.Sprintf("has %q under %q", did, id), fmt.Sprintf("what came last: %q", want))
		}
	}
	batch := []jobpoll.Record{s.record("z", 1, `1`), s.record("y", 1, `2`), s.record("y", 2, `3`)}
	before := slices.Clone(batch)
	s.put("Put", batch...)
	for i := range batch {
		if recordDiff(before[i], batch[i]) != "" {
			s.fault("Put", "changed the batch that it was given", "the caller's slice as it was")
			break
		}
	}
}

// storeIDs are all different.
func storeIDs() []string {
	ids := []string{
		"", " ", "a", "A", " a", "a ", "a\n", "a\t", "\x00", "a\x00", "a\x00b", "a\x00c", "\xff", "\xfe\xff", "a\xc3", "é", "e\u0301", "É", "ß", "ss",
		"日本語", "😀", "\u202e", "\ufeffa", "%", "_", "a%", "a_", "*", "'", "''", `"`, `\`, `\\`, `a\x00`, "'; DROP TABLE jobs; --", "$1", "?", "null", "0", "00", "1e1", "10",
		"1:r/a", "1:r/A", "../x", "a/b", "a//b",
	}
	long := strings.Repeat("x", 10<<10)
	return append(ids, long, long[1:], long+"y", long+"Y", strings.Repeat("é", 5<<10))
}

func checkStoreIDs(s *storeStage) {
	want := map[string]jobpoll.Record{}
	for i, id := range storeIDs() {
		rec := s.record(id, uint64(i+1), fmt.Sprintf(`{"n":%d}`, i))
		want[id] = rec
		s.put(fmt.Sprintf("Put of the ID %q", clip(id)), rec)
	}
	for _, rec := range s.load("Load") {
		w, ok := want[rec.ID]
		if !ok {
			s.fault("Put of odd IDs, then Load", fmt.Sprintf("gave the ID %q", clip(rec.ID)), "the IDs as they were put")
			continue
		}
		s.same(fmt.Sprintf("Put of the ID %q, then Load", clip(rec.ID)), w, rec)
	}
	for _, id := range storeIDs() {
		if got, ok := s.get(fmt.Sprintf("Get of the ID %q", clip(id)), jobpoll.RecordJob, id); !ok {
			s.fault(fmt.Sprintf("Put of the ID %q, then Get", clip(id)), "told that there is none", "the record")
		} else {
			s.same(fmt.Sprintf("Put of the ID %q, then Get", clip(id)), want[id], got)
		}
	}
	if n := len(s.load("Load")); n != len(want) {
		s.fault(fmt.Sprintf("Put of %d IDs, then Load", len(want)), fmt.Sprintf("gave %d records", n), "each once")
	}
}

func checkStoreKinds(s *storeStage) {
	var all []jobpoll.Record
	for _, kind := range []jobpoll.RecordKind{jobpoll.RecordUnknown, jobpoll.RecordJob, jobpoll.RecordNotice, jobpoll.RecordSubmission,
		jobpoll.RecordProfile, jobpoll.RecordBudget, 77, 255} {
		rec := s.record("a", uint64(kind)+1, fmt.Sprintf(`{"kind":%d}`, kind))
		rec.Kind = kind
		all = append(all, rec)
	}
	s.put("Put of one ID in all kinds", all...)
	for _, want := range all {
		got, ok := s.get("Get", want.Kind, want.ID)
		if !ok {
			s.fault(fmt.Sprintf("Put of a record of kind %d, then Get", want.Kind), "told that there is none", "the record")
			continue
		}
		s.same(fmt.Sprintf("Put of a record of kind %d, then Get", want.Kind), want, got)
	}
	if n := len(s.load("Load")); n != len(all) {
		s.fault(fmt.Sprintf("Put of %d kinds, then Load", len(all)), fmt.Sprintf("gave %d records", n), "all")
	}
}

func checkStoreBytes(s *storeStage) {
	for i, data := range []string{
		`{"b":1, "a":2}`, " {\n\t\"a\" : 1e2 }\n", `{"a":1,"a":2}`, `"\u0000\ud800\u00e9é"`, `12345678901234567890.10`, `"<&>"`, `{"":null}`, `[]`,
		`"` + "\u2028" + `"`,
	} {
		rec := s.record(fmt.Sprintf("bytes-%d", i), 1, data)
		s.put(fmt.Sprintf("Put of the Data %q", data), rec)
		got, ok := s.get("Get", rec.Kind, rec.ID)
		s.must(ok, fmt.Sprintf("Put of the Data %q, then Get", data), "told that there is none", "the record")
		s.same(fmt.Sprintf("Put of the Data %q, then Get", data), rec, got)
	}
}

func checkStoreLarge(s *storeStage) {
	noise := []byte(`"` + strings.Repeat(" ", 4<<20) + `"`)
	for i, x := 1, uint32(1); i < len(noise)-1; i++ {
		x = x*1664525 + 1013904223
		noise[i] = 'A' + byte(x>>28)
	}
	large := s.record("large", 1, "")
	large.Data = noise
	s.put("Put of 4 MiB", large)
	got, ok := s.get("Get", large.Kind, large.ID)
	s.must(ok, "Put of 4 MiB, then Get", "told that there is none", "the record")
	s.same("Put of 4 MiB, then Get", large, got)

	batch := make([]jobpoll.Record, 128)
	for i := range batch {
		batch[i] = s.record(fmt.Sprintf("batch-%03d", i), 1, `"`+strings.Repeat("x", 32<<10)+`"`)
	}
	s.put("Put of 128 records of 32 KiB", batch...)
	if n := len(s.load("Load")); n != len(batch)+1 {
		s.fault("Put of 128 records of 32 KiB, then Load", fmt.Sprintf("gave %d records", n), fmt.Sprint(len(batch)+1))
	}
}

func checkStoreTimes(s *storeStage) {
	for i, at := range []time.Time{
		{},
		time.Date(2024, 2, 29, 23, 59, 59, 999_999_000, time.UTC),
		time.Date(2030, 6, 1, 12, 0, 0, 123_456_000, time.UTC),
		time.Date(1970, 1, 1, 0, 0, 0, 0, time.UTC),
		time.Date(1969, 12, 31, 23, 59, 59, 500_000_000, time.UTC),
		time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC),
	} {
		rec := s.record(fmt.Sprintf("time-%d", i), 1<<53+1, `{}`)
		rec.UpdatedAt = at
		if at.After(s.clock.Now()) {
			rec.ExpiresAt = at
		}
		s.put(fmt.Sprintf("Put with the time %v", at), rec)
		got, ok := s.get("Get", rec.Kind, rec.ID)
		s.must(ok, fmt.Sprintf("Put with the time %v, then Get", at), "told that there is none", "the record")
		s.same(fmt.Sprintf("Put with the time %v, then Get", at), rec, got)
	}
}

func checkStoreExpiry(s *storeStage) {
	now := s.clock.Now().UTC()
	for id, at := range map[string]time.Time{"hour": now.Add(time.Hour), "day": now.Add(24 * time.Hour), "ever": {}} {
		rec := s.record(id, 1, `{}`)
		rec.ExpiresAt = at
		s.put("Put", rec)
	}
	look := func(when string, want ...string) {
		var got []string
		for _, rec := range s.load("Load") {
			got = append(got, rec.ID)
		}
		slices.Sort(got)
		if !slices.Equal(got, want) {
			s.fault("Put of records that expire after an hour, after a day, and never; then Load "+when, fmt.Sprintf("gave %q", got), fmt.Sprintf("%q", want))
		}
		for _, id := range []string{"day", "ever", "hour"} {
			if _, ok := s.get("Get", jobpoll.RecordJob, id); ok != slices.Contains(want, id) {
				s.fault(fmt.Sprintf("the same with Get of %q %s", id, when), fmt.Sprintf("found it: %v", ok), fmt.Sprintf("found: %v", !ok))
			}
		}
	}
	look("at once", "day", "ever", "hour")
	s.clock.Advance(59 * time.Minute)
	look("after 59 minutes", "day", "ever", "hour")
	s.clock.Advance(2 * time.Minute)
	look("after 61 minutes", "day", "ever")
	late := s.record("hour", 2, `"again"`)
	s.put("Put of a key that has expired", late)
	look("once it was put again", "day", "ever", "hour")
	s.clock.Advance(365 * 24 * time.Hour)
	look("after a year", "ever", "hour")
}

// scribble is what a caller writes over its bytes after Put.
const scribble = `{"b"`

func checkStoreNoSharing(s *storeStage) {
	rec := s.record("a", 1, `{"a":1}`)
	want := rec
	want.Data = slices.Clone(rec.Data)
	s.put("Put", rec)
	copy(rec.Data, scribble)
	got, ok := s.get("Get", rec.Kind, rec.ID)
	s.must(ok, "Put, then Get", "told that there is none", "the record")
	s.same("Put, then the caller changes the bytes of its Data", want, got)
	for _, what := range []string{"Get", "Load"} {
		if what == "Load" {
			got = s.load(what)[0]
		}
		copy(got.Data, "YYYY")
		if got, ok = s.get("Get", rec.Kind, rec.ID); ok {
			s.same("the caller changes the bytes that "+what+" gave", want, got)
		}
	}
}

func checkStoreContext(s *storeStage) {
	s.put("Put", s.record("a", 1, `{}`))
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	calls := map[string]func(context.Context) error{
		"Get": func(ctx context.Context) error { _, err := s.store.Get(ctx, jobpoll.RecordJob, "a"); return err },
		"Put": func(ctx context.Context) error { return s.store.Put(ctx, []jobpoll.Record{s.record("b", 1, `{}`)}) },
		"Load": func(ctx context.Context) error {
			for _, err := range s.store.Load(ctx) {
				if err != nil {
					return err
				}
			}
			return nil
		},
	}
	if s.leaser != nil {
		calls["Lease"] = func(ctx context.Context) error { _, err := s.leaser.Lease(ctx, "a", time.Minute); return err }
	}
	for _, name := range []string{"Get", "Put", "Load", "Lease"} {
		f := calls[name]
		if f == nil {
			continue
		}
		if err := s.callUntil(ended, name, f); err == nil {
			s.fault(name+" with a context that has ended", "returned no error", "an error")
		}
	}
}
