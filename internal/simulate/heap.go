package simulate

// heap gives acts back in order of time. It is container/heap without the interface,
// which takes most of the time of a large run.
type heap []act

func (h heap) first() (act, bool) {
	if len(h) == 0 {
		return act{}, false
	}
	return h[0], true
}

func (h *heap) push(a act) {
	*h = append(*h, a)
	all := *h
	for i := len(all) - 1; i > 0; {
		parent := (i - 1) / 2
		if !all[i].before(all[parent]) {
			return
		}
		all[i], all[parent] = all[parent], all[i]
		i = parent
	}
}

func (h *heap) pop() {
	all := *h
	last := len(all) - 1
	all[0] = all[last]
	all = all[:last]
	*h = all
	for i := 0; ; {
		child := 2*i + 1
		if child >= last {
			return
		}
		if child+1 < last && all[child+1].before(all[child]) {
			child++
		}
		if !all[child].before(all[i]) {
			return
		}
		all[i], all[child] = all[child], all[i]
		i = child
	}
}
