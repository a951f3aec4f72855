package jobpoll

import "time"

// WebhookMode says what is expected of the webhooks of a route before any of
// its jobs has ended.
type WebhookMode uint8

// The modes. Whatever the mode, every notice is taken.
const (
	// WebhookLearned looks as if there were none, until notices have told
	// enough ends and it is known by measurement how long the jobs of a profile
	// take. It never relies on the next webhook.
	WebhookLearned WebhookMode = iota
	// WebhookExpected waits for them from the first job on, until too many
	// have stayed away.
	WebhookExpected
	// WebhookAbsent never waits for one: the ordinary schedule always holds.
	WebhookAbsent
)

var webhookModeNames = []string{"learned", "expected", "absent"}

// String returns the name in lower case.
func (m WebhookMode) String() string { return enumName(webhookModeNames, int(m)) }

// MarshalText writes the name.
func (m WebhookMode) MarshalText() ([]byte, error) { return []byte(m.String()), nil }

// UnmarshalText reads a name; one that is not known reads as WebhookLearned.
func (m *WebhookMode) UnmarshalText(b []byte) error {
	*m = WebhookMode(enumValue(webhookModeNames, string(b), int(WebhookLearned)))
	return nil
}

// Defaults of WebhookPolicy.
const (
	DefaultWebhookPace   = 2 * time.Minute
	DefaultWebhookWindow = 100
	DefaultResultLife    = time.Hour
)

// Bounds of WebhookPolicy.
const (
	minWindow  = 8
	maxWindow  = 1000
	leastFirst = time.Minute // of a first look that nothing but an estimate is known for
)

// WebhookPolicy says how the webhooks of a route and its looks go together. A
// webhook tells the end; a slow look makes sure. While webhooks come, a job is
// first looked at when it should have been told, then at Pace. As they stay
// away the first look moves forward and the pace quickens, down to the
// ordinary Schedule, and back when they come again: WebhookOutlook has the rule.
//
// The zero WebhookPolicy learns: where no notice ever comes, it changes nothing.
type WebhookPolicy struct {
	// Mode says what is expected at the start. Zero: WebhookLearned.
	Mode WebhookMode `json:"mode,omitempty"`
	// First is the age of the first look while all webhooks come. Zero: the
	// age by which 99 % of the jobs of the profile have ended where at least 20
	// were measured, else three times the expected duration, and at least 1 min.
	First time.Duration `json:"first,omitempty"`
	// Pace is the gap of the looks after the first while all webhooks come.
	// Where the ordinary gap is longer, it holds. Zero: 2 min, or half of
	// ResultLife if that is less.
	Pace time.Duration `json:"pace,omitempty"`
	// ResultLife is how long the provider keeps a result or the link to it. No
	// job goes without a look for more than half of it, unless the ordinary
	// gap is longer. Zero: 1 h, the shortest that providers of video publish.
	ResultLife time.Duration `json:"result_life,omitempty"`
	// Window is how many ends, the latest of the route, the coverage is measured
	// over: 8 to 1000. Zero: 100.
	Window int `json:"window,omitempty"`
	// HintOnly takes every notice of the route as a hint, whatever its Trust:
	// the job is looked at, and the look is believed.
	HintOnly bool `json:"hint_only,omitempty"`
}

// pace and longest are what the fields mean.
func (w *WebhookPolicy) pace() time.Duration {
	if w.Pace > 0 {
		return w.Pace
	}
	return min(DefaultWebhookPace, w.longest())
}

// longest is the longest gap that waiting for a webhook may make.
func (w *WebhookPolicy) longest() time.Duration {
	if w.ResultLife > 0 {
		return max(w.ResultLife/2, 1)
	}
	return DefaultResultLife / 2
}

func (w *WebhookPolicy) window() int {
	if w.Window > 0 {
		return w.Window
	}
	return DefaultWebhookWindow
}

func (w *WebhookPolicy) faults(at string) []error {
	all := negative(at, "means the default", durationField{"First", w.First}, durationField{"Pace", w.Pace}, durationField{"ResultLife", w.ResultLife})
	if w.Mode > WebhookAbsent {
		all = append(all, configError(at+".Mode", "%d is no mode", w.Mode))
	}
	if n := w.Window; n != 0 && (n < minWindow || n > maxWindow) {
		all = append(all, configError(at+".Window", "%d is outside %d to %d; zero means %d", n, minWindow, maxWindow, DefaultWebhookWindow))
	}
	if w.ResultLife < 0 {
		return all
	}
	for _, f := range []durationField{{"First", w.First}, {"Pace", w.Pace}} {
		if f.d > w.longest() {
			all = append(all, configError(at+"."+f.name,
				"%v is more than half the life of a result (%v): one whose webhook is lost could be gone before it is seen; set ResultLife if results live longer",
				f.d, 2*w.longest()))
		}
	}
	return all
}
