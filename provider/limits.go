package provider

import (
	"time"

	"github.com/jobpoll/jobpoll"
)

// ReplicateLimits are Replicate's published limits for one account: 600
// predictions created a minute, and 3000 other calls a minute. They are lower
// while credit is low, and 6 a minute without a payment method; a 429 tells.
// Source: https://replicate.com/docs/topics/predictions/rate-limits
func ReplicateLimits() jobpoll.Limits {
	return jobpoll.Limits{
		Status: jobpoll.LaneLimits{Limit: jobpoll.Limit{Rate: 3000.0 / 60}},
		Submit: jobpoll.LaneLimits{Limit: jobpoll.Limit{Rate: 600.0 / 60}},
	}
}

// FalLimits are the limits of a fal account that may run so many requests at
// once, which is the only limit that fal publishes; zero and less is none. fal
// itself queues what is over it, so that the limit is for callers who want to
// wait on their own side. The pace of status calls is not published.
// Source: fal's documents of the queue, https://fal.ai/docs
func FalLimits(concurrent int) jobpoll.Limits {
	return jobpoll.Limits{Jobs: max(concurrent, 0)}
}

// AtlasLimits bound nothing: Atlas Cloud publishes no limits.
func AtlasLimits() jobpoll.Limits { return jobpoll.Limits{} }

// AtlasVideo is what Atlas Cloud says of videos: 1 to 5 minutes in all. It names
// no pace for looks.
// Source: https://atlascloud.ai/docs/en
func AtlasVideo() jobpoll.Guidance { return jobpoll.Guidance{Expected: 3 * time.Minute} }

// AtlasImages is what Atlas Cloud says of images: look every 3 s.
// Source: https://atlascloud.ai/docs/en
func AtlasImages() jobpoll.Guidance { return jobpoll.Guidance{Floor: 3 * time.Second} }
