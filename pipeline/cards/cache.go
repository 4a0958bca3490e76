package cards

import "container/list"

// cache holds compiled cards within a number of bytes. The first in is the first out, but
// for those that were used since they were looked at last: so a look-up only sets a flag.
type cache struct {
	limit, bytes int64
	queue        list.List // of *Card
}

// room reports whether there is place for a card, large ones aside.
func (c *cache) room() bool { return c.bytes < c.limit }

// put adds a card that is not there. One that is larger than the whole cache is left out.
func (c *cache) put(card *Card) {
	if card.bytes > c.limit {
		return
	}
	for c.bytes+card.bytes > c.limit {
		c.evict()
	}
	c.bytes += card.bytes
	c.queue.PushBack(card)
	card.Entry.used.Store(true) // it was asked for, and may wait for its use
	card.Entry.card.Store(card)
}

func (c *cache) evict() {
	for {
		oldest := c.queue.Front()
		card := oldest.Value.(*Card)
		if card.Entry.used.Swap(false) {
			c.queue.MoveToBack(oldest)
			continue
		}
		c.queue.Remove(oldest)
		card.Entry.card.Store(nil)
		c.bytes -= card.bytes
		return
	}
}
