package jobpoll

import "math/bits"

// Odd constants of wyhash (public domain), for mixing.
const (
	mix0 = 0xa0761d6478bd642f
	mix1 = 0xe7037ed1a0b428db
	mix2 = 0x8ebc6af09c88c6e3
	mix3 = 0x589965cc75374cc3
)

// spread gives two numbers in [0, 1) from route and id, the same in every
// process and for ever.
func spread(route, id string) (float64, float64) {
	h := fold(mix(mix(mix0, route), id), mix3)
	return float64(int64(h>>32)) / (1 << 32), float64(int64(h&0xffffffff)) / (1 << 32)
}

// mix folds a string into a hash: all of it up to 32 bytes, of a longer one
// the first and the last sixteen, where ids differ.
func mix(h uint64, s string) uint64 {
	n := len(s)
	h ^= uint64(n) * mix2
	switch {
	case n >= 16:
		return fold(word(s)^h, word(s[8:])^mix1) ^ fold(word(s[n-16:])^mix2, word(s[n-8:])^h)
	case n >= 8:
		return fold(word(s)^h, word(s[n-8:])^mix1)
	}
	var v uint64
	for i := range n {
		v = v<<8 | uint64(s[i])
	}
	return fold(v^h, mix1)
}

// fold multiplies to 128 bits and lays one half over the other.
func fold(a, b uint64) uint64 {
	hi, lo := bits.Mul64(a, b)
	return hi ^ lo
}

// word reads eight bytes, which the compiler does in one load.
func word(s string) uint64 {
	_ = s[7]
	return uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 |
		uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
}

func unit(r float64) float64 {
	if r >= 0 && r < 1 {
		return r
	}
	return 0.5
}
