package jobpoll

import (
	"math"
	"time"
)

// Defaults of Schedule.
const (
	DefaultMinDelay = time.Second
	DefaultJitter   = 0.2
	DefaultPollCost = 2 * time.Second
	// NoJitter switches jitter off.
	NoJitter float64 = -1
	// NoPlan as Schedule.PollCost keeps the Poller from going by learned plans.
	NoPlan time.Duration = -1
)

// Schedule says how often to look. It is plain data; the zero Schedule is the
// default one. The table that it holds is a starting point of this library and
// no promise of any provider.
type Schedule struct {
	// Buckets are the classes of expected duration, in rising order of UpTo.
	// Nil: DefaultBuckets. Unknown is the row for jobs of which no duration is
	// expected; a zero First: DefaultUnknown.
	Buckets []Bucket `json:"buckets,omitempty"`
	Unknown Bucket   `json:"unknown,omitzero"`
	// Delays, if set, replace the buckets: the delay before the first look,
	// then after each look that brought no progress; the last one repeats. A
	// look with progress starts them anew, at the first.
	// Ladder makes them from any BackOff. Each must be positive.
	Delays []time.Duration `json:"delays,omitempty"`
	// Queued is the delay while the provider says that the job is queued.
	// Zero: the cap of the job's bucket, or the longest of Delays.
	Queued time.Duration `json:"queued,omitempty"`
	// NearEnd bounds the gap while the job's age is 0.9 to 1.1 times the expected
	// duration, and the first look in that window comes at most NearEnd after its
	// start. Zero: off. An estimate of the end and a learned Plan go first.
	NearEnd time.Duration `json:"near_end,omitempty"`
	// PollCost is the price of one look in time of delay: a Plan makes
	// PollCost·(looks) + delay least. A quarter of it gives half the delay for
	// twice the looks, and four times as much twice the delay for half the looks.
	// Take 0.5 s where looks are cheap and a user waits, 10 s where the account's
	// rate is scarce. Zero: 2 s. NoPlan: the Poller goes by no Plan. It goes by
	// none either where Delays are set and this is zero, as those are meant.
	PollCost time.Duration `json:"poll_cost,omitempty"`
	// MinDelay is the least gap between an answer and the next look of the
	// same job. Zero: 1 s.
	MinDelay time.Duration `json:"min_delay,omitempty"`
	// MaxDelay is the latency that the caller accepts: it caps every delay
	// that is not a wait asked for by the provider or the probe after refused
	// credentials. A learned Plan is made to keep it and may have longer gaps
	// where hardly a job ends. Zero: none.
	MaxDelay time.Duration `json:"max_delay,omitempty"`
	// Jitter spreads each delay by ± this part of it, never under a floor and
	// never over the cap. A planned look is moved by half of that part, at most a
	// tenth, of the smaller of the gaps before and after it. Zero: 0.2; NoJitter:
	// none; else 0 to 1.
	Jitter float64 `json:"jitter,omitempty"`
}

// Bucket is one row of the table: jobs expected to take at most UpTo (zero:
// any time) are first looked at after First, and later at gaps that grow from
// there to Later. Which value inside the two ranges a job gets comes from a
// hash of its route and id, so that alike jobs do not march in step.
type Bucket struct {
	UpTo  time.Duration `json:"up_to,omitempty"`
	First Span          `json:"first"`
	Later Span          `json:"later"`
}

// Span is a range of delays, both ends included.
type Span struct {
	Min time.Duration `json:"min"`
	Max time.Duration `json:"max"`
}

func (s Span) at(x float64) time.Duration { return s.Min + time.Duration(x*float64(s.Max-s.Min)) }

func seconds(a, b int64) Span {
	return Span{Min: time.Duration(a) * time.Second, Max: time.Duration(b) * time.Second}
}

var defaultBuckets = [...]Bucket{
	{UpTo: 30*time.Second - 1, First: seconds(2, 4), Later: seconds(5, 8)},
	{UpTo: 2 * time.Minute, First: seconds(4, 8), Later: seconds(10, 20)},
	{UpTo: 10 * time.Minute, First: seconds(10, 20), Later: seconds(30, 60)},
	{First: seconds(20, 40), Later: seconds(60, 120)},
}

var defaultUnknown = Bucket{First: seconds(5, 5), Later: seconds(60, 60)}

// DefaultBuckets returns the table: previews under 30 s (their UpTo is a
// nanosecond less), standard jobs to 2 min, long renders to 10 min, and what is
// beyond.
func DefaultBuckets() []Bucket { return append([]Bucket(nil), defaultBuckets[:]...) }

// DefaultUnknown returns the row for jobs of which nothing is known: a first
// look after a cautious 5 s, then gaps that double up to 60 s.
func DefaultUnknown() Bucket { return defaultUnknown }

// Guidance is what a provider's documentation says of one profile. A zero
// field says nothing.
type Guidance struct {
	// First is the delay before the first look; it also starts the growth, and
	// may not be above Cap. For a first look that is later than the gaps to
	// follow set Job.NotBefore.
	First time.Duration `json:"first,omitempty"`
	// Floor is the provider's published pace: no two looks of one job closer.
	Floor time.Duration `json:"floor,omitempty"`
	// Cap is the longest delay.
	Cap time.Duration `json:"cap,omitempty"`
	// Expected is the duration, for jobs that bring no estimate of their own.
	Expected time.Duration `json:"expected,omitempty"`
}

// Next says when to look next, or why to stop. It is pure and safe for
// concurrent use.
//
// The delay is: base (the estimate of the end, else the learned plan, else
// Delays, else the bucket), grown (bucket and errors only, doubled with each
// look without progress), capped, jittered, put off while a webhook can still
// be on time (WebhookOutlook), cut at the next limit of the stop rules, and
// last lifted to every floor. While queued the base is
// Schedule.Queued or the cap. A limit that has passed stops the job only after
// a look at or after it; but a wait of the provider that outlasts the limit
// parks the job and stops it at the limit.
func (s Schedule) Next(in Input) Decision { return s.next(&in) } // inlined, which saves copies

func (s *Schedule) next(in *Input) Decision {
	q := in.question()
	v := s.decide(&q)
	return Decision{At: in.Now.Add(v.delay), Cause: v.cause, Stop: v.stop}
}

// never is an offset for what does not come.
const never = time.Duration(math.MaxInt64)

// decide works in offsets from now.
func (s *Schedule) decide(q *question) choice {
	t := q.track
	if t.troubled() {
		if r := q.ended(); r != ReasonNone {
			return choice{cause: CauseEnded, stop: r}
		}
	}
	age := q.age()
	limit, why := q.limit(age)
	wait, waitCause := time.Duration(0), CauseNone
	if t.Looks == 0 || t.NotBefore != 0 || q.closed != 0 {
		wait, waitCause = q.wait()
	}

	last := -age // the instant that the delay counts from
	if t.Looks > 0 {
		// A memory from a clock ahead of ours must not put the job to sleep.
		last = -max(q.now.Sub(t.LastAt), 0)
	}
	if limit <= 0 {
		fresh := t.freshAt(last, limit)
		if wait > 0 && !(fresh && t.ErrorKind == ErrorNone) {
			return choice{cause: CauseEnded, stop: ReasonRateLimited}
		}
		if fresh {
			return choice{cause: CauseEnded, stop: why}
		}
	}

	p := s.pace(q, age)
	delay, ceiling, cause := s.base(q, &p, age+last)
	if p.room >= 0 {
		delay = s.around(delay, p.room, q.rand)
	} else {
		delay = s.jitter(min(delay, ceiling), ceiling, q.rand)
	}
	if cause == CauseBackoff && delay > p.base {
		delay = t.stride(delay, age+last, p.base)
	}
	delay, cause = s.reconcile(q, &p, delay, cause, age+last)
	at := last + delay
	if at > limit {
		at, cause = limit, CauseDeadline
	}
	if t.Looks > 0 {
		if floor := last + max(s.minDelay(), q.guidance.Floor); at < floor {
			at, cause = floor, CauseFloor
		}
	}
	if wait > at && wait > 0 {
		if wait > limit {
			return choice{delay: max(limit, 0), cause: CauseParked}
		}
		at, cause = min(plus(wait, s.lift(min(p.step(), wait), q.rand)), limit), waitCause
	}
	return choice{delay: max(at, 0), cause: cause}
}

// pace is what a job's class says: the base of growth and the cap, both after
// guidance, price and MaxDelay.
type pace struct {
	base, limit time.Duration
	guided      bool          // base is the guidance's First
	dear        float64       // by how much the price stretches
	room        time.Duration // how far jitter may move a planned look; negative: it is none
}

func (p *pace) step() time.Duration { return min(p.base, p.limit) }

func (s *Schedule) pace(q *question, age time.Duration) pace {
	var p pace
	g := q.guidance
	if len(s.Delays) > 0 {
		p.base, p.limit = s.rung(0), s.top()
		if g.Cap > 0 {
			p.limit = min(p.limit, g.Cap)
		}
	} else {
		hb, hc := spread(q.job.Route, q.job.ID)
		b := s.bucket(q.expected, age)
		p.base, p.limit = b.First.at(hb), b.Later.at(hc)
		if g.Cap > 0 {
			p.limit = g.Cap
		}
	}
	if g.First > 0 {
		p.base, p.guided = g.First, true
	}
	p.dear, p.room = 1, -1
	if q.price > 1 && q.price <= math.MaxFloat64 {
		p.dear = math.Sqrt(q.price)
		p.base, p.limit = stretch(p.base, p.dear), stretch(p.limit, p.dear)
	}
	if s.MaxDelay > 0 {
		p.limit = min(p.limit, s.MaxDelay)
		p.base = min(p.base, s.MaxDelay)
	}
	return p
}

// base gives the delay before jitter, the cap that jitter must not pass, and
// what decided.
func (s *Schedule) base(q *question, p *pace, age time.Duration) (time.Duration, time.Duration, Cause) {
	t := q.track
	switch {
	case t.ErrorKind == ErrorAuth:
		return time.Minute, time.Minute, CauseAuth
	case t.ErrorKind == ErrorNoSuchJob:
		ceiling := s.errorCap(q, p, age)
		return grow(p.step(), t.Missing-1, ceiling), ceiling, CauseMissing
	case t.ErrorKind == ErrorRateLimited || t.ErrorKind == ErrorConcurrency:
		return 0, p.limit, CauseHint
	case t.ErrorKind != ErrorNone:
		ceiling := s.errorCap(q, p, age)
		return grow(p.step(), t.Errors-1, ceiling), ceiling, CauseError
	case t.NoOutput:
		return p.step(), p.limit, CauseConfirm
	case t.State == StateQueued && s.Queued > 0:
		d := s.Queued
		if p.dear > 1 {
			d = stretch(d, p.dear)
		}
		if s.MaxDelay > 0 {
			d = min(d, s.MaxDelay)
		}
		return d, d, CauseQueued
	case t.State == StateQueued:
		return p.limit, p.limit, CauseQueued
	}
	if t.State == StateRunning && t.FinishAt != 0 {
		if left := t.FinishAt.Sub(t.LastAt); left > 0 {
			if d, room, ok := q.plan.estimated(t.FinishTold, left, p.dear*p.dear); ok {
				p.room = room
				if t.FinishTold {
					return d, p.limit, CauseEta
				}
				return d, p.limit, CauseProgress
			}
		}
	}
	if q.plan != nil {
		if d, room, ok := q.plan.ask(t, age, p.dear); ok {
			if early, ok := q.plan.probe(q.job, t, age, d); ok && p.dear == 1 {
				d, room = early, min(early, d-early)/10
			}
			p.room = room
			return d, never, CausePlan
		}
	}
	if t.Looks == 0 && p.guided {
		// What the provider's page says of the first look is not cut at the cap.
		return p.base, plus(p.base, p.base/2), CauseFirst
	}
	delay, cause := time.Duration(0), CauseBackoff
	if len(s.Delays) > 0 {
		delay, cause = s.rung(t.Unchanged), CauseLadder
		if p.dear > 1 {
			delay = stretch(delay, p.dear)
		}
	} else {
		delay = grow(p.step(), t.Unchanged, p.limit)
	}
	if t.Looks == 0 {
		cause = CauseFirst
	}
	if near, room, ok := s.near(age, q.expected, min(delay, p.limit)); ok {
		return near, min(near+room, p.limit), CauseNear
	}
	return delay, p.limit, cause
}

// errorCap is how far errors back off: to the cap, or where Delays is one
// fixed delay, to the cap that the job's bucket would have had.
func (s *Schedule) errorCap(q *question, p *pace, age time.Duration) time.Duration {
	if len(s.Delays) != 1 {
		return p.limit
	}
	d := max(p.limit, s.bucket(q.expected, age).Later.Max)
	if c := q.guidance.Cap; c > 0 {
		d = min(d, c)
	}
	if s.MaxDelay > 0 {
		d = min(d, s.MaxDelay)
	}
	return d
}

// near shortens a delay that would jump into, or is inside, the window in
// which the job is expected to end; room is how much later it may become.
func (s *Schedule) near(age, expected, delay time.Duration) (d, room time.Duration, ok bool) {
	if s.NearEnd <= 0 || expected <= 0 {
		return 0, 0, false
	}
	opens := expected - expected/10
	switch {
	case age < opens && delay > opens-age:
		return opens - age, s.NearEnd, true
	case age >= opens && age-expected < expected/10 && delay > s.NearEnd:
		return s.NearEnd, 0, true
	}
	return 0, 0, false
}

// stride keeps one wait within 2.5 times the one before: jitter on two delays
// of which one is the double of the other could make it three times.
func (t *Track) stride(delay, age, base time.Duration) time.Duration {
	before := age
	if t.Looks > 1 {
		before = t.Gap
	}
	if before <= 0 || before > never/4 {
		return delay
	}
	return min(delay, max(before*5/2, base))
}

// rung gives a delay of the ladder; one that New would refuse counts as MinDelay.
func (s *Schedule) rung(n int32) time.Duration {
	if d := s.Delays[min(max(int(n), 0), len(s.Delays)-1)]; d > 0 {
		return d
	}
	return s.minDelay()
}

func (s *Schedule) top() time.Duration {
	d := s.minDelay()
	for _, v := range s.Delays {
		d = max(d, v)
	}
	return d
}

func (s *Schedule) pollCost() time.Duration {
	if s.PollCost > 0 {
		return s.PollCost
	}
	return DefaultPollCost
}

func (s *Schedule) minDelay() time.Duration {
	if s.MinDelay > 0 {
		return s.MinDelay
	}
	return DefaultMinDelay
}

// bucket gives the row of a job; one that outlives its row moves to the next.
func (s *Schedule) bucket(expected, age time.Duration) *Bucket {
	if expected <= 0 {
		if s.Unknown.First.Max > 0 {
			return &s.Unknown
		}
		return &defaultUnknown
	}
	rows := s.Buckets
	if len(rows) == 0 {
		rows = defaultBuckets[:]
	}
	d := max(expected, age)
	for i := range rows[:len(rows)-1] {
		if d <= rows[i].UpTo {
			return &rows[i]
		}
	}
	return &rows[len(rows)-1]
}

// jitter spreads a delay evenly over its part either side, with the upper end
// cut at the cap, so that at the cap it only goes down.
func (s *Schedule) jitter(d, ceiling time.Duration, rnd float64) time.Duration {
	j := s.jitterPart()
	if j == 0 || d <= 0 {
		return d
	}
	down := j * float64(d)
	up := min(down, float64(ceiling-d))
	return min(plus(d, time.Duration(unit(rnd)*(up+down)-down)), ceiling)
}

// around spreads a planned look over the room on both sides: at the jitter of
// 0.2 that is the default all of it, at more no further.
func (s *Schedule) around(d, room time.Duration, rnd float64) time.Duration {
	part := min(s.jitterPart()/DefaultJitter, 1)
	return plus(d, time.Duration(part*(2*unit(rnd)-1)*float64(room)))
}

// lift is the jitter above a floor, which must not go below it.
func (s *Schedule) lift(room time.Duration, rnd float64) time.Duration {
	return max(0, time.Duration(s.jitterPart()*unit(rnd)*float64(room)))
}

func (s *Schedule) jitterPart() float64 {
	switch {
	case s.Jitter == 0:
		return DefaultJitter
	case s.Jitter > 0 && s.Jitter <= 1:
		return s.Jitter
	}
	return 0
}

// plus adds without wrapping; b may be negative if a is not.
func plus(a, b time.Duration) time.Duration {
	if b > 0 && a > never-b {
		return never
	}
	return a + b
}

func stretch(d time.Duration, f float64) time.Duration {
	if v := float64(d) * f; v < float64(24*time.Hour) {
		return time.Duration(v)
	}
	return max(d, 24*time.Hour)
}
