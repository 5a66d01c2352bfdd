package uplink

import (
	"errors"
	"math/rand"
	"time"
)

// ErrFull is returned when flash holds no more readings.
var ErrFull = errors.New("ring buffer is full")

// Backoff doubles from two seconds to half an hour and adds jitter, so that a thousand
// stations do not knock at the same instant after the provider's outage.
func Backoff(attempt int, rng *rand.Rand) time.Duration {
	wait := 2 * time.Second
	for i := 0; i < attempt && wait < 30*time.Minute; i++ {
		wait *= 2
	}
	if wait > 30*time.Minute {
		wait = 30 * time.Minute
	}
	return wait/2 + time.Duration(rng.Int63n(int64(wait/2)))
}

// Queue keeps unsent readings in order, oldest first.
type Queue struct {
	items []Reading
	max   int
}

// Add appends or reports ErrFull; it never throws an old reading away silently.
func (q *Queue) Add(r Reading) error {
	if len(q.items) >= q.max {
		return ErrFull
	}
	q.items = append(q.items, r)
	return nil
}
