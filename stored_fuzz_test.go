package jobpoll

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Whatever a store gives back, nothing panics, the good record next to it is
// taken up, and what was taken up can be stored and taken up again.
func FuzzStoredRecords(f *testing.F) {
	for _, data := range []string{
		`{"v":1,"job":{"route":"r","id":"x"}}`,
		`{"v":1,"job":{"route":"r","id":"x","client_key":"c","not_before":"9999-12-31T23:59:59Z"},"track":{"v":1,"looks":3,"last_at":"2026-01-01T00:00:00Z"},"polls":3}`,
		`{"v":1,"job":{"route":"r","id":"x"},"fetching":true,"report":{"state":"succeeded","output":{"a":1}},"rules":{"max_age":1}}`,
		`{"v":1,"job":{"route":"r","id":"x"},"outcome":{"job":{"route":"r","id":"x"},"reason":"deadline"},"again":{"route":"r","id":"x"}}`,
		`{"v":1,"job":{"route":"r","id":"x"},"outcome":{"job":{"route":"r","id":"x"},"reason":"succeeded"},"told":true}`,
		`{"key":{"Route":"r","ID":"x"},"report":{"state":"succeeded"},"trust":"authoritative","at":"2026-01-01T00:00:00Z"}`,
	} {
		f.Add([]byte(data), false)
		f.Add([]byte(data), true)
	}
	f.Fuzz(func(t *testing.T, data []byte, notice bool) {
		store := NewMemoryStore(nil)
		poller := func() (*Poller, int) {
			p, err := New(Config{Store: store, Routes: []Route{{
				Name: "r", Checker: CheckerFunc(func(context.Context, Job) (Report, error) { return Report{}, nil }),
			}}})
			require.NoError(t, err)
			n, _ := p.Restore(t.Context())
			require.Zero(t, p.meters.panics.Load())
			return p, n
		}
		rec := Record{Kind: RecordJob, ID: "1:r/x", Route: "r", Rev: 1, Data: append([]byte{}, data...)}
		if notice {
			rec.Kind, rec.ID = RecordNotice, "n"
		}
		good := Record{Kind: RecordJob, ID: "1:r/good", Route: "r", Rev: 1, Data: []byte(`{"v":1,"job":{"route":"r","id":"good"}}`)}
		require.NoError(t, store.Put(t.Context(), []Record{rec, good}))
		p, n := poller()
		require.NotNil(t, p.find(Key{"r", "good"}))
		for s := range p.jobs.End() {
			if r := p.jobs.at(s); r != nil {
				p.poke(r, CauseNow, StampOf(time.Now()))
				again := p.encode(r)
				require.NotEmpty(t, again.Data)
				require.NoError(t, store.Put(t.Context(), []Record{again}))
			}
		}
		_, m := poller()
		require.Equal(t, n, m)
	})
}
