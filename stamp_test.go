package jobpoll

import (
	"encoding/json"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestStampsKeepInstantsToTheNanosecond(t *testing.T) {
	for _, at := range []time.Time{
		t0, t0.Add(1), time.Unix(1, 999_999_999), time.Unix(-1, 1), t0.In(time.FixedZone("", 3600)),
		time.Date(1700, 1, 1, 0, 0, 0, 7, time.UTC), time.Date(2262, 1, 1, 0, 0, 0, 7, time.UTC),
	} {
		s := StampOf(at)
		require.True(t, at.Equal(s.Time()), "%v: %v", at, s)
		require.Equal(t, time.UTC, s.Time().Location())
		b, err := json.Marshal(s)
		require.NoError(t, err)
		var back Stamp
		require.NoError(t, json.Unmarshal(b, &back))
		require.Equal(t, s, back)
		require.Equal(t, `"`+s.String()+`"`, string(b))
	}
}

func TestStampsOfNoInstantAreZero(t *testing.T) {
	require.Zero(t, StampOf(time.Time{}))
	require.True(t, Stamp(0).IsZero())
	require.True(t, Stamp(0).Time().IsZero())
	require.Equal(t, "none", Stamp(0).String())
	b, err := json.Marshal(struct {
		A Stamp `json:"a,omitzero"`
		B Stamp `json:"b"`
	}{})
	require.NoError(t, err)
	require.Equal(t, `{"b":""}`, string(b))
	s := Stamp(5)
	require.NoError(t, json.Unmarshal([]byte(`""`), &s))
	require.Zero(t, s)
	require.Error(t, json.Unmarshal([]byte(`"yesterday"`), &s))
}

func TestStampsNeverWrap(t *testing.T) {
	far, old := time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(1, 1, 1, 0, 0, 0, 1, time.UTC)
	require.EqualValues(t, int64(math.MaxInt64), StampOf(far))
	require.EqualValues(t, int64(math.MinInt64), StampOf(old))
	require.EqualValues(t, int64(math.MaxInt64), StampOf(t0).Add(math.MaxInt64))
	require.EqualValues(t, int64(math.MinInt64), StampOf(old).Add(-1))
	require.EqualValues(t, int64(math.MaxInt64), StampOf(far).Sub(StampOf(old)))
	require.EqualValues(t, int64(math.MinInt64), StampOf(old).Sub(StampOf(far)))
	require.Equal(t, 5*sec, mark(7*sec).Sub(mark(2*sec)))
	require.Equal(t, -5*sec, mark(2*sec).Sub(mark(7*sec)))
}
