package records_test

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jobpoll/jobpoll/internal/records"
)

func TestIndexAgainstAMap(t *testing.T) {
	for name, hash := range map[string]func(key int) uint64{
		"good hash": func(k int) uint64 { return uint64(k+1) * 0x9e3779b97f4a7c15 },
		"bad hash":  func(k int) uint64 { return uint64(k%7) << 60 },
		"all equal": func(int) uint64 { return 42 },
	} {
		t.Run(name, func(t *testing.T) {
			rnd := rand.New(rand.NewPCG(5, 6))
			var x records.Index
			slotOf := map[int]int32{}
			keyAt := map[int32]int{}
			next := int32(0)
			for i := range 40_000 {
				key := rnd.IntN(300)
				slot, in := slotOf[key]
				got, ok := x.Find(hash(key), func(s int32) bool { return keyAt[s] == key && slotOf[key] == s })
				require.Equal(t, in, ok)
				if in {
					require.Equal(t, slot, got)
				}
				grow := i/10_000%2 == 0
				switch {
				case !in && (grow || rnd.IntN(4) == 0):
					slotOf[key], keyAt[next] = next, key
					x.Insert(hash(key), next)
					next++
				case in && (!grow || rnd.IntN(4) == 0):
					x.Remove(hash(key), slot)
					x.Remove(hash(key), slot) // a second time changes nothing
					delete(slotOf, key)
					delete(keyAt, slot)
				}
				require.Equal(t, len(slotOf), x.Len())
			}
			for key, slot := range slotOf {
				x.Remove(hash(key), slot)
			}
			require.Zero(t, x.Len())
			require.Equal(t, records.Index{}, x, "the memory goes with the last entry")
		})
	}
}
