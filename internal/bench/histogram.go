package main

import (
	"math/bits"
	"sync/atomic"
)

const (
	subBuckets = 32 // a power of two: values are kept to 1/32
	buckets    = 41 * subBuckets
	parts      = 16
)

// histogram counts durations in ns, up to hours, to about 3 per cent. Adding is
// one atomic addition, in one of several parts so that cores rarely meet.
type histogram struct {
	parts [parts][buckets]atomic.Uint32
	early atomic.Int64 // the most that a value was below zero
}

func newHistogram() *histogram { return new(histogram) }

// add counts a value; key spreads the values over the parts.
func (h *histogram) add(key int, v int64) {
	if v < 0 {
		h.below(-v)
		v = 0
	}
	h.parts[key%parts][bucketOf(v)].Add(1)
}

func (h *histogram) below(v int64) {
	for {
		most := h.early.Load()
		if v <= most || h.early.CompareAndSwap(most, v) {
			return
		}
	}
}

func bucketOf(v int64) int {
	if v < subBuckets {
		return int(v)
	}
	shift := bits.Len64(uint64(v)) - 1 - bits.Len(subBuckets-1)
	return min(subBuckets*shift+int(v>>shift), buckets-1)
}

// upper is the largest value of a bucket.
func upper(b int) int64 {
	if b < 2*subBuckets {
		return int64(b)
	}
	shift := b/subBuckets - 1
	return int64(b-subBuckets*shift+1)<<shift - 1
}

// counts are the values of a histogram at an instant.
type counts [buckets]uint64

func (h *histogram) counts() *counts {
	c := new(counts)
	for p := range h.parts {
		for b := range h.parts[p] {
			c[b] += uint64(h.parts[p][b].Load())
		}
	}
	return c
}

// since is what was counted after an earlier instant.
func (c *counts) since(before *counts) *counts {
	d := new(counts)
	for b := range c {
		d[b] = c[b] - before[b]
	}
	return d
}

func (c *counts) total() uint64 {
	var n uint64
	for _, k := range c {
		n += k
	}
	return n
}

// quantile is the value that the part q of all is not above, in milliseconds;
// q = 1 gives the largest. Zero where there is none.
func (c *counts) quantile(q float64) float64 {
	left := max(uint64(q*float64(c.total())+0.5), 1)
	for b, k := range c {
		if k >= left {
			return float64(upper(b)) / 1e6
		}
		left -= k
	}
	return 0
}
