package records

// Index finds slots by the hash of a key. It keeps the hash and the slot and
// leaves the key to its user, who is asked whether a slot has it: 8 bytes an
// entry, at most three quarters full. The zero Index is empty and ready. It is
// not safe for concurrent use.
//
// It is cut into shards, so that no growth has more to do than a few thousand
// entries.
type Index struct {
	shards [shardCount]shard
	live   int
}

const (
	shardBits  = 8
	shardCount = 1 << shardBits
	minShard   = 8
)

// shard is a hash table with linear probing; entries are hash<<32 | slot+1.
type shard struct {
	table []uint64
	live  int
}

// Len is the number of entries.
func (x *Index) Len() int { return x.live }

// Find gives the slot with that hash for which same is true.
func (x *Index) Find(hash uint64, same func(slot int32) bool) (slot int32, ok bool) {
	s := &x.shards[hash>>(64-shardBits)]
	if i := s.find(uint32(hash), same); i >= 0 {
		return int32(uint32(s.table[i])) - 1, true
	}
	return 0, false
}

// Insert adds a slot. The caller has made sure that its key is not in.
func (x *Index) Insert(hash uint64, slot int32) {
	s := &x.shards[hash>>(64-shardBits)]
	if 4*(s.live+1) > 3*len(s.table) {
		s.resize(max(minShard, 2*len(s.table)))
	}
	s.put(uint64(uint32(hash))<<32 | uint64(uint32(slot)+1))
	s.live++
	x.live++
}

// Remove takes a slot out.
func (x *Index) Remove(hash uint64, slot int32) {
	s := &x.shards[hash>>(64-shardBits)]
	i := s.find(uint32(hash), func(o int32) bool { return o == slot })
	if i < 0 {
		return
	}
	s.live--
	x.live--
	s.cut(i)
	if n := len(s.table); n > minShard && 8*s.live < n {
		s.resize(n / 2)
	} else if s.live == 0 {
		s.table = nil
	}
}

func (s *shard) find(hash uint32, same func(slot int32) bool) int {
	if len(s.table) == 0 {
		return -1
	}
	mask := len(s.table) - 1
	for i := int(hash) & mask; s.table[i] != 0; i = (i + 1) & mask {
		if e := s.table[i]; uint32(e>>32) == hash && same(int32(uint32(e))-1) {
			return i
		}
	}
	return -1
}

func (s *shard) put(e uint64) {
	mask := len(s.table) - 1
	i := int(e>>32) & mask
	for s.table[i] != 0 {
		i = (i + 1) & mask
	}
	s.table[i] = e
}

// cut empties place i and moves those up that had to give way to it.
func (s *shard) cut(i int) {
	mask := len(s.table) - 1
	for j := (i + 1) & mask; s.table[j] != 0; j = (j + 1) & mask {
		home := int(s.table[j]>>32) & mask
		if (j-home)&mask >= (j-i)&mask {
			s.table[i] = s.table[j]
			i = j
		}
	}
	s.table[i] = 0
}

func (s *shard) resize(n int) {
	old := s.table
	s.table = make([]uint64, n)
	for _, e := range old {
		if e != 0 {
			s.put(e)
		}
	}
}
