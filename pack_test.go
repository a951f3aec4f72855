package jobpoll

import (
	"context"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"
)

// packFill sets every field below v to a random value, often zero.
func packFill(rnd *rand.Rand, v reflect.Value) {
	if rnd.IntN(3) == 0 {
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			packFill(rnd, v.Field(i))
		}
	case reflect.String:
		v.SetString(fmt.Sprintf("text %d%s", rnd.IntN(50), strings.Repeat("x", rnd.IntN(40))))
	case reflect.Bool:
		v.SetBool(rnd.IntN(2) == 0)
	case reflect.Float64:
		v.SetFloat(rnd.Float64())
	case reflect.Int, reflect.Int32, reflect.Int64:
		v.SetInt(int64(rnd.Int32N(1 << 30)))
	case reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		v.SetUint(uint64(rnd.IntN(3)))
	}
}

// packRecord makes a random record that waits.
func packRecord(p *Poller, rnd *rand.Rand, id int) *record {
	job := Job{Route: "r", ID: fmt.Sprint("id ", id), Expected: time.Duration(rnd.IntN(3)) * mnt}
	if rnd.IntN(2) == 0 {
		job.ClientKey = fmt.Sprint("client ", id)
	}
	for _, s := range []*string{&job.Ref, &job.Profile} {
		packFill(rnd, reflect.ValueOf(s).Elem())
	}
	for _, at := range []*time.Time{&job.SubmittedAt, &job.NotBefore, &job.Deadline} {
		if rnd.IntN(2) == 0 {
			*at = after(time.Duration(rnd.Int64N(int64(2 * mnt)))) // also ahead of us
		}
	}
	r := p.prepare(job, mark(mnt))
	packFill(rnd, reflect.ValueOf(&r.track).Elem())
	t := &r.track
	t.End, t.Failure, t.Version = ReasonNone, 0, version(t.Looks)
	if rnd.IntN(2) == 0 {
		t.GoodAt = t.LastAt
	}
	r.phase, r.cause, r.next = phase(rnd.IntN(2)), Cause(rnd.IntN(20)), callKind(rnd.IntN(3))
	r.planned, r.firstAt, r.lastAt, r.resumeAt = mark(sec), mark(2*sec), Stamp(rnd.IntN(2)), Stamp(rnd.IntN(2))
	r.polls, r.lookups, r.rev, r.stale, r.held = rnd.IntN(9), rnd.Int32N(5), uint64(rnd.IntN(3)), rnd.IntN(2) == 0, rnd.IntN(2) == 0
	if rnd.IntN(2) == 0 {
		r.word = t.RawStatus
	}
	if rnd.IntN(2) == 0 {
		r.kept = Report{State: t.State, RawStatus: t.RawStatus}
		packFill(rnd, reflect.ValueOf(&r.kept.Progress).Elem())
		packFill(rnd, reflect.ValueOf(&r.kept.QueuePosition).Elem())
		packFill(rnd, reflect.ValueOf(&r.kept.Remaining).Elem())
		if rnd.IntN(2) == 0 {
			r.kept.StartedAt = after(time.Duration(rnd.IntN(1000)))
		}
		if rnd.IntN(2) == 0 {
			r.kept.Ref = job.Ref
		}
		r.report = &r.kept
	}
	return r
}

func packPoller(t testing.TB) *Poller {
	p, err := New(Config{Routes: []Route{{
		Name: "r", Checker: CheckerFunc(func(context.Context, Job) (Report, error) { return Report{}, nil }),
	}}})
	require.NoError(t, err)
	return p
}

func TestWhatIsPackedComesBackTheSame(t *testing.T) {
	p := packPoller(t)
	p.jobs.profiles.MaxStrings, p.jobs.words.MaxStrings = 20, 20 // some find no room
	rnd := rand.New(rand.NewPCG(7, 8))
	type kept struct {
		r    *record
		want record
	}
	var all []kept
	check := func(k kept) {
		var got record
		require.NotNil(t, p.jobs.look(k.r.slot, &got))
		require.Equal(t, k.want.report == nil, got.report == nil)
		got.report, k.want.report, k.want.touched = nil, nil, false
		require.Equal(t, k.want, got)
		slot, ok := p.jobs.find(k.want.route, k.want.job.ID)
		require.True(t, ok)
		require.Equal(t, k.r.slot, slot)
		if c := k.want.job.ClientKey; c != "" {
			slot, ok = p.jobs.findClient(c)
			require.True(t, ok)
			require.Equal(t, k.r.slot, slot)
		}
	}
	for i := range 20_000 {
		switch n := rnd.IntN(10); {
		case n < 5 || len(all) == 0:
			r := packRecord(p, rnd, i)
			p.jobs.add(r)
			want := *r
			require.True(t, r.packable(), "%+v", want)
			all = append(all, kept{r: &record{slot: r.slot, gen: r.gen}, want: want})
			p.jobs.settle()
			check(all[len(all)-1])
		case n < 8: // it changes
			k := &all[rnd.IntN(len(all))]
			r := p.jobs.at(k.r.slot)
			other := packRecord(p, rnd, i)
			other.slot, other.gen, other.touched = r.slot, r.gen, r.touched
			ref := other.job.Ref
			other.job = r.job
			other.job.Ref = ref
			other.submitted, other.notBefore, other.deadline, other.rules, other.early = r.submitted, r.notBefore, r.deadline, r.rules, r.early
			if other.kept.Ref != "" {
				other.kept.Ref = ref
			}
			*r = *other
			if r.report != nil {
				r.report = &r.kept
			}
			k.want = *r
			p.jobs.settle()
			check(*k)
		default:
			i := rnd.IntN(len(all))
			p.jobs.remove(p.jobs.at(all[i].r.slot))
			p.jobs.settle()
			all[i] = all[len(all)-1]
			all = all[:len(all)-1]
		}
	}
	require.Equal(t, len(all), p.jobs.Len())
	for _, k := range all {
		check(k)
		p.jobs.remove(p.jobs.at(k.r.slot))
	}
	p.jobs.settle()
	require.Zero(t, p.jobs.Len()+p.jobs.byID.Len()+p.jobs.byClient.Len()+p.jobs.extras.Len())
	require.LessOrEqual(t, p.jobs.texts.Bytes(), 64<<10)
}

// A line has no place for these: the record stays as it is.
func TestWhatALineHasNoPlaceForIsKeptUnpacked(t *testing.T) {
	for name, set := range map[string]func(r *record){
		"a call":                      func(r *record) { r.call = &lookCall{} },
		"a call that hangs":           func(r *record) { r.stuck = &lookCall{} },
		"a phase":                     func(r *record) { r.phase = phaseEnding },
		"a look that was asked":       func(r *record) { r.poked = CauseNow },
		"an update":                   func(r *record) { r.update = &Update{} },
		"a follower":                  func(r *record) { r.followers = []*follower{{}} },
		"a waiter":                    func(r *record) { r.waiters = []*endWaiter{{}} },
		"the next watch":              func(r *record) { r.again = &rewatch{} },
		"a success":                   func(r *record) { r.success = &Report{} },
		"an end":                      func(r *record) { r.track.End = ReasonFailed },
		"rules of its own":            func(r *record) { r.rules = &StopRules{MaxErrors: 77} },
		"a far deadline":              func(r *record) { r.exact = false },
		"a memory of a newer version": func(r *record) { r.track.Version, r.track.Looks = 99, 1 },
		"an output":                   func(r *record) { r.kept.Output = []byte("{}"); r.report = &r.kept },
		"a failure":                   func(r *record) { r.kept.Failure = &Failure{}; r.report = &r.kept },
		"another state":               func(r *record) { r.kept.State = StateRunning; r.report = &r.kept },
		"another word told":           func(r *record) { r.word = "WHAT" },
		"a hint":                      func(r *record) { r.kept.Hint.RetryAfter = 1; r.report = &r.kept },
		"an end of the provider":      func(r *record) { r.kept.CompletedAt = t0; r.report = &r.kept },
		"an expiry":                   func(r *record) { r.kept.ResultExpiresAt = t0; r.report = &r.kept },
		"another ref":                 func(r *record) { r.kept.Ref = "other"; r.report = &r.kept },
		"an output dropped":           func(r *record) { r.kept.OutputDropped = true; r.report = &r.kept },
		"a callback under way":        func(r *record) { r.served = true },
		"a late end told":             func(r *record) { r.lateTold = true },
		"an attempt to tell":          func(r *record) { r.attempts = 1 },
		"a failure of the store":      func(r *record) { r.storeErr = 1 },
		"many look-ups":               func(r *record) { r.lookups = 256 },
	} {
		p := packPoller(t)
		r := p.prepare(Job{Route: "r", ID: "a"}, mark(0))
		p.jobs.add(r)
		require.True(t, r.packable())
		set(r)
		p.jobs.settle()
		require.NotZero(t, p.jobs.lines.Get(r.slot).hot, name)
		require.Same(t, r, p.jobs.at(r.slot), name)
	}
}

// packSkipped are the fields of a record that are not set on their own here.
var packSkipped = map[string]string{
	"slot": "of the table", "gen": "of the table", "touched": "of the table", "gone": "of the table",
	"route": "made of the job", "rules": "made of the job", "exact": "made of the job", "shift": "made of the job", "early": "made of the job",
	"submitted": "made of the job", "notBefore": "made of the job", "deadline": "made of the job",
	"report": "points to kept", "succeeded": "told by success",
	"outcome": "told by phase", "endErr": "told by phase",
}

// setOwn sets a field to a value that is its own and not zero.
func setOwn(t *testing.T, v reflect.Value, n int) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(fmt.Sprint("text ", n))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Float64:
		v.SetFloat(1 / float64(n+1))
	case reflect.Int, reflect.Int32, reflect.Int64:
		v.SetInt(int64(n) + 1)
	case reflect.Uint8:
		v.SetUint(1)
	case reflect.Uint32, reflect.Uint64:
		v.SetUint(uint64(n) + 1)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
	case reflect.Struct:
		require.Equal(t, reflect.TypeFor[time.Time](), v.Type(), "a struct of its own kind")
		v.Set(reflect.ValueOf(after(time.Duration(n+1) * time.Second)))
	default:
		require.Fail(t, "a field of a kind that is not known here", "%v", v.Type())
	}
}

// eachField calls f for each field of v, with those of a Track, a Job, a Report and
// its Hint one by one.
func eachField(v reflect.Value, path string, f func(path string, v reflect.Value)) {
	for i := range v.NumField() {
		at, name := v.Field(i), path+v.Type().Field(i).Name
		at = reflect.NewAt(at.Type(), unsafe.Pointer(at.UnsafeAddr())).Elem() // also one that is not exported
		switch at.Type() {
		case reflect.TypeFor[Track](), reflect.TypeFor[Job](), reflect.TypeFor[Report](), reflect.TypeFor[Hint]():
			eachField(at, name+".", f)
		default:
			f(name, at)
		}
	}
}

// A field that is added to a record, or to what is in one, and forgotten where it is
// packed would be lost as soon as its job waits.
func TestNoFieldOfARecordIsForgotten(t *testing.T) {
	var paths []string
	eachField(reflect.ValueOf(new(record)).Elem(), "", func(path string, _ reflect.Value) {
		if packSkipped[path] == "" {
			paths = append(paths, path)
		}
	})
	require.Greater(t, len(paths), 70)
	packed := 0
	for n, path := range paths {
		set := func(v any) {
			eachField(reflect.ValueOf(v).Elem(), "", func(at string, field reflect.Value) {
				if at == path {
					setOwn(t, field, n)
				}
			})
		}
		p := packPoller(t)
		job := Job{Route: "r", ID: "a", SubmittedAt: t0}
		if strings.HasPrefix(path, "job.") {
			if path == "job.Route" {
				continue // there is one
			}
			of := &record{job: job}
			set(of)
			job = of.job
		}
		r := p.prepare(job, mark(mnt))
		if strings.HasPrefix(path, "kept.") {
			r.report = &r.kept
		}
		if !strings.HasPrefix(path, "job.") {
			set(r)
		}
		p.jobs.add(r)
		want := *r
		p.jobs.settle()
		if p.jobs.lines.Get(r.slot).hot != 0 { // it keeps its record
			require.Same(t, r, p.jobs.at(r.slot), path)
			continue
		}
		packed++
		var got record
		require.NotNil(t, p.jobs.look(r.slot, &got))
		require.Equal(t, want.report == nil, got.report == nil, path)
		got.report, want.report, want.touched = nil, nil, false
		require.Equal(t, want, got, "%s is lost: is it packed (pack.go)?", path)
	}
	require.Greater(t, packed, 50)
}

func TestALineFillsMemoryPages(t *testing.T) {
	require.LessOrEqual(t, unsafe.Sizeof(line{}), uintptr(160))
}
