package jobpoll

import (
	"encoding"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// enum is what each enum of the package can do.
type enum[T any] interface {
	*T
	encoding.TextUnmarshaler
}

// checkEnum takes an enum with n known values through names and JSON. Names
// are stored, so that they must never change.
func checkEnum[T interface {
	~uint8
	comparable
	fmt.Stringer
	encoding.TextMarshaler
}, P enum[T]](t *testing.T, unknown T, names ...string) {
	t.Helper()
	t.Run(fmt.Sprintf("%T", unknown), func(t *testing.T) {
		seen := map[string]bool{}
		for i, name := range names {
			v := T(i)
			require.Equal(t, name, v.String())
			require.False(t, seen[name], "%s twice", name)
			seen[name] = true
			b, err := json.Marshal(v)
			require.NoError(t, err)
			require.Equal(t, `"`+name+`"`, string(b))
			var back T
			require.NoError(t, json.Unmarshal(b, P(&back)))
			require.Equal(t, v, back)
			m, err := json.Marshal(map[T]int{v: 1})
			require.NoError(t, err)
			require.Equal(t, `{"`+name+`":1}`, string(m), "also as a key")
		}
		require.Equal(t, "unknown", T(len(names)).String(), "a value out of range")
		require.Equal(t, "unknown", T(255).String())
		for _, odd := range []string{"", "from a newer version", "UNKNOWN", " " + names[1]} {
			v := T(1)
			require.NoError(t, P(&v).UnmarshalText([]byte(odd)))
			require.Equal(t, unknown, v, "%q", odd)
		}
	})
}

func TestEnumsAreStoredByName(t *testing.T) {
	checkEnum(t, StateUnknown, "unknown", "queued", "running", "succeeded", "failed", "canceled", "expired")
	checkEnum(t, FailureUnknown, "unknown", "fault", "rejected", "filtered", "quota", "policy", "no output")
	checkEnum(t, ErrorUnknown, "none", "transient", "rate limited", "concurrency", "quota", "auth", "invalid", "policy", "no such job", "gone", "unknown")
	checkEnum(t, ScopeDefault, "default", "job", "budget", "account")
	checkEnum(t, ReasonUnknown, "none", "succeeded", "failed", "canceled", "expired", "deadline", "queue limit", "processing limit", "no progress",
		"unreachable", "rate limited", "auth", "invalid", "quota", "lost", "result expired", "unknown status", "ambiguous submission", "not sent", "abandoned", "unknown")
	checkEnum(t, AdviceDoNotResubmit, "do not resubmit", "safe")
	checkEnum(t, ViaUnknown, "unknown", "poll", "webhook", "lookup", "local", "submit")
	checkEnum(t, CauseNone, "none", "first", "backoff", "ladder", "plan", "eta", "progress", "queued", "near", "error", "missing", "auth",
		"confirm", "hint", "cooldown", "floor", "deadline", "parked", "ended", "notice", "now", "wake", "reconcile")
	checkEnum(t, FindingUnknown, "unknown", "present", "absent", "impossible")
}

func TestAChangeIsStoredByTheNamesOfItsParts(t *testing.T) {
	const all = ChangeState | ChangeWord | ChangeProgress | ChangeQueue | ChangeAdvance | ChangeEnded
	seen := map[string]bool{}
	for c := Change(0); c <= all; c++ {
		b, err := json.Marshal(c)
		require.NoError(t, err)
		require.False(t, seen[string(b)], "%s twice", b)
		seen[string(b)] = true
		back := ChangeWord
		require.NoError(t, json.Unmarshal(b, &back))
		require.Equal(t, c, back)
	}
	for text, want := range map[string]Change{
		`"none"`: 0, `""`: 0, `"state+word"`: ChangeState | ChangeWord, `"word+state"`: ChangeState | ChangeWord, `"queue+of tomorrow"`: ChangeQueue, `"+"`: 0,
	} {
		c := ChangeEnded
		require.NoError(t, json.Unmarshal([]byte(text), &c))
		require.Equal(t, want, c, text)
	}
	require.Equal(t, "none", Change(1<<15).String())
	b, err := json.Marshal(Update{Change: ChangeState | ChangeAdvance})
	require.NoError(t, err)
	require.Contains(t, string(b), `"change":"state+advance"`)
	b, err = json.Marshal(Update{})
	require.NoError(t, err)
	require.NotContains(t, string(b), `"change"`)
}

func TestTablesOfNamesAreComplete(t *testing.T) {
	require.Len(t, stateNames, int(StateExpired)+1)
	require.Len(t, failureNames, int(FailureNoOutput)+1)
	require.Len(t, errorNames, int(ErrorUnknown)+1)
	require.Len(t, scopeNames, int(ScopeAccount)+1)
	require.Len(t, reasonNames, int(ReasonUnknown)+1)
	require.Len(t, adviceNames, int(AdviceSafe)+1)
	require.Len(t, viaNames, int(ViaSubmit)+1)
	require.Len(t, causeNames, int(CauseReconcile)+1)
	require.Len(t, findingNames, int(FindingImpossible)+1)
	require.Len(t, Reasons(), int(ReasonAbandoned))
}

func TestOnlyEndStatesAreTerminal(t *testing.T) {
	for s := range State(255) {
		require.Equal(t, s >= StateSucceeded && s <= StateExpired, s.Terminal(), s.String())
	}
}

func TestFailureInOneLine(t *testing.T) {
	require.Equal(t, "fault", Failure{Kind: FailureFault}.String())
	require.Equal(t, "filtered moderation: M", Failure{Kind: FailureFiltered, Code: "moderation", Message: "M"}.String())
}
