package sqlstore

import (
	"context"
	"time"
)

const (
	sweepRows  = 500         // deleted in one transaction
	sweepEvery = time.Minute // beside a Put
)

// Sweep deletes the records that have expired, in batches of 500, and says how
// many they were. It is seldom needed: Put deletes a batch about once a minute, and
// one each time while there are more. Those that are still there are not seen.
func (s *Store) Sweep(ctx context.Context) (int, error) {
	total := 0
	for {
		n, err := s.sweep(ctx)
		total += n
		if err != nil {
			return total, failed("expired records could not be deleted", cause(ctx, err))
		}
		if n < sweepRows {
			return total, nil
		}
	}
}

func (s *Store) sweep(ctx context.Context) (int, error) {
	done, err := s.takeTurn(ctx)
	if err != nil {
		return 0, err
	}
	defer done()
	result, err := s.prepared[s.queries.sweep].ExecContext(ctx, s.clock.Now().UnixMicro(), sweepRows)
	if err != nil {
		return 0, err
	}
	n, err := result.RowsAffected()
	return int(n), err
}

// sweepSometimes deletes a batch if it is time to. What has been put is safe
// already, so an error only means that it is tried again.
func (s *Store) sweepSometimes(ctx context.Context) {
	now := s.clock.Now()
	at := s.sweepAt.Load()
	if now.Unix() < at || !s.sweepAt.CompareAndSwap(at, now.Add(sweepEvery).Unix()) {
		return
	}
	if n, err := s.sweep(ctx); err == nil && n == sweepRows {
		s.sweepAt.Store(0)
	}
}
