package jobpoll

import (
	"math"
	"time"
)

// Stamp is an instant in nanoseconds since 1970 UTC; zero is no instant. It is
// how a Track keeps times: a third of a time.Time, and compared as a number.
// In JSON it is an RFC 3339 time. What lies before 1677 or after 2262 is taken
// for the first or last instant that a Stamp has.
type Stamp int64

// stamps further off than these do not fit.
const (
	firstStamp = math.MinInt64
	lastStamp  = math.MaxInt64
)

// StampOf gives the Stamp of an instant, zero for the zero time.
func StampOf(t time.Time) Stamp {
	const most = math.MaxInt64/int64(time.Second) - 1
	if s := t.Unix(); s < most && s > -most {
		return Stamp(s*int64(time.Second) + int64(t.Nanosecond()))
	}
	return farStamp(t)
}

func farStamp(t time.Time) Stamp {
	switch {
	case t.IsZero():
		return 0
	case t.Unix() < 0:
		return firstStamp
	}
	return lastStamp
}

// Time gives the instant in UTC, the zero time for zero.
func (s Stamp) Time() time.Time {
	if s == 0 {
		return time.Time{}
	}
	return time.Unix(0, int64(s)).UTC()
}

// IsZero reports whether there is no instant.
func (s Stamp) IsZero() bool { return s == 0 }

// Add gives the instant d later, as far as a Stamp goes.
func (s Stamp) Add(d time.Duration) Stamp {
	sum := s + Stamp(d)
	switch {
	case d > 0 && sum < s:
		return lastStamp
	case d < 0 && sum > s:
		return firstStamp
	}
	return sum
}

// Sub gives the time from o to s, as far as a Duration goes.
func (s Stamp) Sub(o Stamp) time.Duration {
	d := s - o
	switch {
	case s >= o && d < 0:
		return math.MaxInt64
	case s < o && d >= 0:
		return math.MinInt64
	}
	return time.Duration(d)
}

// String writes the instant in RFC 3339, "none" for zero.
func (s Stamp) String() string {
	if s == 0 {
		return "none"
	}
	return s.Time().Format(time.RFC3339Nano)
}

// MarshalText writes the instant in RFC 3339; nothing for zero.
func (s Stamp) MarshalText() ([]byte, error) {
	if s == 0 {
		return nil, nil
	}
	return s.Time().AppendFormat(nil, time.RFC3339Nano), nil
}

// UnmarshalText reads an instant in RFC 3339; nothing reads as zero.
func (s *Stamp) UnmarshalText(b []byte) error {
	if len(b) == 0 {
		*s = 0
		return nil
	}
	t, err := time.Parse(time.RFC3339Nano, string(b))
	if err != nil {
		return err
	}
	*s = StampOf(t)
	return nil
}
