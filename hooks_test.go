package jobpoll

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// recordAll sets every hook to one that notes its name under who.
func recordAll(who string, log *[]string) Hooks {
	var h Hooks
	v := reflect.ValueOf(&h).Elem()
	for i := range v.NumField() {
		name := who + " " + v.Type().Field(i).Name
		v.Field(i).Set(reflect.MakeFunc(v.Field(i).Type(), func([]reflect.Value) []reflect.Value {
			*log = append(*log, name)
			return nil
		}))
	}
	return h
}

// callAll calls every hook that is set and returns the names of the others.
func callAll(h Hooks) (unset []string) {
	v := reflect.ValueOf(h)
	for i := range v.NumField() {
		if v.Field(i).IsNil() {
			unset = append(unset, v.Type().Field(i).Name)
			continue
		}
		v.Field(i).Call([]reflect.Value{reflect.Zero(v.Field(i).Type().In(0))})
	}
	return unset
}

func hookNames() (names []string) {
	for _, f := range reflect.VisibleFields(reflect.TypeFor[Hooks]()) {
		names = append(names, f.Name)
	}
	return names
}

func TestEveryHookIsJoined(t *testing.T) {
	var log, want []string
	unset := callAll(JoinHooks(recordAll("a", &log), recordAll("b", &log)))
	for _, n := range hookNames() {
		want = append(want, "a "+n, "b "+n)
	}
	assert.Empty(t, unset)
	assert.Equal(t, want, log)
}

func TestJoiningWithNoHooksKeepsTheOther(t *testing.T) {
	for _, left := range []bool{true, false} {
		var log []string
		h := JoinHooks(Hooks{}, recordAll("x", &log))
		if left {
			h = JoinHooks(recordAll("x", &log), Hooks{})
		}
		assert.Empty(t, callAll(h))
		assert.Len(t, log, len(hookNames()))
	}
}

func TestHooksThatAreNilInBothStayNil(t *testing.T) {
	assert.Equal(t, hookNames(), callAll(JoinHooks(Hooks{}, Hooks{})))
}

func TestEachHookTakesOneEventByValue(t *testing.T) {
	for _, f := range reflect.VisibleFields(reflect.TypeFor[Hooks]()) {
		require.Equal(t, reflect.Func, f.Type.Kind(), f.Name)
		require.Equal(t, 1, f.Type.NumIn(), f.Name)
		require.Equal(t, reflect.Struct, f.Type.In(0).Kind(), f.Name)
		require.Zero(t, f.Type.NumOut(), f.Name)
	}
}

func TestNoticeKindsAreWrittenAndReadByName(t *testing.T) {
	for k := NoticeUnknown; k <= NoticeLate; k++ {
		b, err := json.Marshal(k)
		require.NoError(t, err)
		var back NoticeKind
		require.NoError(t, json.Unmarshal(b, &back))
		assert.Equal(t, k, back)
	}
	assert.Equal(t, "dropped", NoticeDropped.String())
	assert.Equal(t, "unknown", NoticeKind(200).String())
	k := NoticeApplied
	require.NoError(t, json.Unmarshal([]byte(`"of a newer version"`), &k))
	assert.Equal(t, NoticeUnknown, k)
}

// look is how the engine calls a hook.
//
//go:noinline
func sampleLook(h *Hooks, job Job, polls int) {
	if h.Looked != nil {
		h.Looked(LookEvent{Job: job, State: StateRunning, RawStatus: "processing", Took: time.Second, Polls: polls})
	}
}

func hookSets() map[string]Hooks {
	polls := 0
	set := Hooks{Looked: func(e LookEvent) { polls += e.Polls }}
	return map[string]Hooks{"nil": {}, "set": set, "joined": JoinHooks(set, set)}
}

func TestHooksAllocateNothing(t *testing.T) {
	for name, h := range hookSets() {
		assert.Zero(t, testing.AllocsPerRun(1000, func() { sampleLook(&h, Job{Route: "r", ID: "1"}, 1) }), name)
	}
}

func BenchmarkHook(b *testing.B) {
	for name, h := range hookSets() {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			job := Job{Route: "r", ID: "1"}
			for b.Loop() {
				sampleLook(&h, job, 1)
			}
		})
	}
}
