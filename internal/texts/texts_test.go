package texts_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jobpoll/jobpoll/internal/texts"
)

func TestArenaAgainstAMap(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	owners := map[int32]texts.Ref{}
	want := map[int32]string{}
	kept := map[string]string{} // what was given out, and a copy
	moves := 0
	a := texts.Arena{}
	a.Held = func(owner int32, r texts.Ref) bool { return owners[owner] == r }
	a.Moved = func(owner int32, old, now texts.Ref) {
		require.Equal(t, owners[owner], old)
		moves++
		owners[owner] = now
	}
	var live []int32
	for i := range int32(60_000) {
		grow := i/15_000%2 == 0
		if len(live) == 0 || grow && rnd.IntN(5) > 0 || !grow && rnd.IntN(5) == 0 {
			s := fmt.Sprintf("%d/%s", i, strings.Repeat("x", rnd.IntN(60)))
			if rnd.IntN(500) == 0 {
				s += strings.Repeat("long", rnd.IntN(20_000))
			}
			owners[i], want[i] = a.Add(i, s), s
			live = append(live, i)
			continue
		}
		k := rnd.IntN(len(live))
		id := live[k]
		live[k], live = live[len(live)-1], live[:len(live)-1]
		got := a.Get(owners[id])
		require.True(t, got == want[id])
		if id%97 == 0 {
			kept[got] = strings.Clone(got)
		}
		r := owners[id]
		delete(owners, id)
		delete(want, id)
		a.Drop(r)
	}
	for id, r := range owners {
		require.True(t, a.Get(r) == want[id])
	}
	for given, clone := range kept {
		require.True(t, given == clone, "a string that was given out has changed")
	}
	require.Positive(t, moves)
	total := 0
	for _, s := range want {
		total += len(s) + 8
	}
	require.LessOrEqual(t, a.Bytes(), 5*total+192<<10)
	for id, r := range owners {
		delete(owners, id)
		a.Drop(r)
	}
	require.LessOrEqual(t, a.Bytes(), 64<<10, "memory goes with the strings")
}

func TestTheEmptyStringCostsNothing(t *testing.T) {
	var a texts.Arena
	r := a.Add(1, "")
	require.Zero(t, r)
	require.Empty(t, a.Get(r))
	a.Drop(r)
	require.Zero(t, a.Bytes())
}

func TestFewStringsNeedLittleMemory(t *testing.T) {
	var a texts.Arena
	a.Add(1, "one")
	require.LessOrEqual(t, a.Bytes(), 4<<10)
}

func TestInternerIsBounded(t *testing.T) {
	n := texts.Interner{MaxStrings: 3, MaxBytes: 10}
	ids := map[string]uint32{}
	for _, s := range []string{"", "a", "bb", "a", "bb"} {
		id, ok := n.ID(s)
		require.True(t, ok)
		ids[s] = id
		require.Equal(t, s, n.Text(id))
	}
	require.Zero(t, ids[""])
	require.NotEqual(t, ids["a"], ids["bb"])
	_, ok := n.ID("eight by")
	require.False(t, ok, "too many bytes")
	_, ok = n.ID("c")
	require.True(t, ok)
	_, ok = n.ID("d")
	require.False(t, ok, "too many strings")
	id, ok := n.ID("bb")
	require.True(t, ok, "those that are in are found")
	require.Equal(t, ids["bb"], id)
	require.Equal(t, 3, n.Len())
}
