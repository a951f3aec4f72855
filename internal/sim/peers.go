package sim

import (
	"math"
	"math/rand/v2"
)

// Peer is how another library or SDK waits for one job when it is left as it
// comes. Where it would give up, it goes on here: that is in its favour, for a
// job given up is paid for and never delivered.
type Peer struct {
	Name string
	// Wait is the delay in seconds before the look n, counted from 0.
	Wait func(n int, r *rand.Rand) float64
}

// Peers are the defaults for "not finished yet", as the sources of these
// libraries have them.
var Peers = []Peer{
	{"fal (Python), 0.1 s", every(0, 0.1)},
	{"fal (JS), Replicate (JS), 0.5 s", every(0, 0.5)},
	{"Replicate (Python), 0.5 s", every(0.5, 0.5)},
	{"Replicate (Go), 1 s", every(1, 1)},
	{"OpenAI, WaveSpeed, Azure .NET, 1 s", every(0, 1)},
	{"Azure JS, ComfyUI client, 2 s", every(0, 2)},
	{"Vercel ai@6 fal, Atlas docs, 2 s", every(2, 2)},
	{"aigo fal, Atlas MCP, 3 s", every(3, 3)},
	{"ComfyUI, aigo, botocore S3, 5 s", every(0, 5)},
	{"Vercel ai@7, 5 s", every(5, 5)},
	{"Runway, 6 ± 1.5 s", func(_ int, r *rand.Rand) float64 { return 4.5 + 3*r.Float64() }},
	{"Vercel ai@6 Google, go-azure-sdk, 10 s", every(10, 10)},
	{"genai (Go) example, 20 s", every(20, 20)},
	{"Azure Go, botocore RDS, 30 s", every(0, 30)},
	{"Azure Python, 30 s", every(30, 30)},
	{"Temporal sample, 60 s", every(0, 60)},
	{"Azure .NET management, 1 to 32 s", atOnce(azureSequence)},
	{"AWS waiter, 5 to 120 s", atOnce(awsWaiter(5, 120))},
	{"AWS waiter, 30 to 1800 s", atOnce(awsWaiter(30, 1800))},
	{"AWS durable, 5 to 300 s", atOnce(fullJitter(5, 1.5, 300))},
	{"Google Go, 1 to 60 s", atOnce(fullJitter(1, 2, 60))},
	{"Google Java, 5 to 45 s", atOnce(fullJitter(5, 1.5, 45))},
	{"Google Python, 1 to 20 s", atOnce(fullJitter(1, 1.5, 20))},
	{"Google Rust, 1 to 60 s", growing(1, 2, 60)},
	{"cenkalti/backoff, 0.5 to 60 s", atOnce(cenkalti)},
	{"Temporal, 1 to 100 s", atOnce(growing(1, 2, 100))},
	{"Terraform, 0.2 to 10 s", atOnce(growing(0.2, 2, 10))},
	{"retryablehttp, 1 to 30 s", atOnce(growing(1, 2, 30))},
	{"aigo Alibaba, 15 to 60 s", growing(15, 1.5, 60)},
	{"Higgsfield docs, 2 to 10 s", higgsfield},
	{"River retry, n⁴ s", atOnce(river)},
	{"asynq retry, n⁴ + 15 s", atOnce(asynq)},
}

// FixedPeer is the loop that everybody writes first.
func FixedPeer(name string, seconds float64) Peer { return Peer{name, every(seconds, seconds)} }

type wait = func(n int, r *rand.Rand) float64

func every(first, later float64) wait {
	return func(n int, _ *rand.Rand) float64 {
		if n == 0 {
			return first
		}
		return later
	}
}

// atOnce looks right after the submission, and then waits.
func atOnce(w wait) wait {
	return func(n int, r *rand.Rand) float64 {
		if n == 0 {
			return 0
		}
		return w(n-1, r)
	}
}

func grown(first, by, limit float64, n int) float64 {
	return min(first*math.Pow(by, float64(n)), limit)
}

func growing(first, by, limit float64) wait {
	return func(n int, _ *rand.Rand) float64 { return grown(first, by, limit, n) }
}

func fullJitter(first, by, limit float64) wait {
	return func(n int, r *rand.Rand) float64 {
		// A nanosecond at least, as gax has it, here a millisecond.
		return max(r.Float64()*grown(first, by, limit, n), 1e-3)
	}
}

func cenkalti(n int, r *rand.Rand) float64 { return grown(0.5, 1.5, 60, n) * (0.5 + r.Float64()) }

func azureSequence(n int, _ *rand.Rand) float64 {
	if n < 3 {
		return 1
	}
	return grown(2, 2, 32, n-3)
}

// awsWaiter is ComputeDelay of smithy-go: exactly the least delay first, then
// evenly between that and one that doubles, at last between the two ends.
func awsWaiter(least, most float64) wait {
	ceiling := math.Floor(math.Log2(most/least) + 1)
	return func(n int, r *rand.Rand) float64 {
		if n == 0 {
			return least
		}
		high := most
		if float64(n+1) <= ceiling {
			high = grown(least, 2, most, n)
		}
		return least + r.Float64()*(high-least)
	}
}

func higgsfield(n int, r *rand.Rand) float64 { return grown(2, 1.5, 10, n) * (0.9 + 0.2*r.Float64()) }

func river(n int, r *rand.Rand) float64 {
	return math.Pow(float64(n+1), 4) * (0.9 + 0.2*r.Float64())
}

func asynq(n int, r *rand.Rand) float64 {
	return math.Pow(float64(n), 4) + 15 + float64(r.IntN(30)*(n+1))
}
