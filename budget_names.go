package jobpoll

import "fmt"

// defaultAccount is the name of the account that stands in for a nil
// Config.Budget: one that nobody gives a budget of his own by chance.
const defaultAccount = "(default)"

// routeNode is the node below b for a route that has no Budget. There is one of
// each name, so that routes of one name in several Pollers on one account
// share it.
func (b *Budget) routeNode(name string) *Budget {
	b.tree.mu.Lock()
	defer b.tree.mu.Unlock()
	c := b.ofRoutes[name]
	if c == nil {
		c = newNode(b.tree, b, name, Limits{})
		b.children = append(b.children, c)
		if b.ofRoutes == nil {
			b.ofRoutes = map[string]*Budget{}
		}
		b.ofRoutes[name] = c
	}
	return c
}

// hasChild reports whether a node that is not for a route without a Budget has
// the name that the one for such a route would have.
func (b *Budget) hasChild(name string) bool {
	b.tree.mu.Lock()
	defer b.tree.mu.Unlock()
	for _, c := range b.children {
		if c.name == b.name+"/"+name && c != b.ofRoutes[name] {
			return true
		}
	}
	return false
}

// nodeNames are the names of the nodes that a Poller knows, which metrics and
// stored cool-downs go by, and whose they are.
type nodeNames map[string]namedNode

type namedNode struct {
	node *Budget
	of   string
}

// add takes in the whole tree of a budget.
func (n nodeNames) add(b *Budget, of string) {
	b.root().walk(func(x *Budget) {
		if _, known := n[x.name]; !known {
			n[x.name] = namedNode{x, of}
		}
	})
}

// faults are the names in the tree of a budget that other nodes have too.
func (n nodeNames) faults(b *Budget, of string) []error {
	var all []error
	own := nodeNames{}
	b.root().walk(func(x *Budget) {
		if old, known := n[x.name]; known && old.node != x {
			all = append(all, sameName(x.name, old.of, of))
		} else if old, known := own[x.name]; known && old.node != x {
			all = append(all, sameName(x.name, of, of))
		}
		own[x.name] = namedNode{x, of}
	})
	return all
}

// routeFault is the same for the node that a route without a Budget gets.
func (n nodeNames) routeFault(account *Budget, route, of string) error {
	name := account.name + "/" + route
	if old, known := n[name]; known {
		account.tree.mu.Lock()
		own := account.ofRoutes[route]
		account.tree.mu.Unlock()
		if old.node != own {
			return sameName(name, old.of, of)
		}
	}
	if account.hasChild(route) { // made since the names were taken in
		return sameName(name, "the account", of)
	}
	return nil
}

func sameName(name, one, other string) error {
	return fmt.Errorf("jobpoll: budget %q: two nodes have that name, one of %s and one of %s; metrics and stored cool-downs go by it: "+
		"give one of them another name, or use the same *Budget for both", name, one, other)
}

// budgetOf says whose the nodes of a route are.
func budgetOf(route string) string { return fmt.Sprintf("route %q", route) }

// claimBudgets takes in the budgets of a new Poller and its routes, and gives
// what is wrong with their names.
func (p *Poller) claimBudgets(cfg *Config) []error {
	account := "Config.Budget"
	if cfg.Budget == nil {
		account = "a nil Config.Budget"
	}
	all := p.nodes.faults(p.budget, account)
	p.nodes.add(p.budget, account)
	known := map[*Budget]bool{p.budget.root(): true} // a tree is gone over once, not for each of its routes
	for i := range cfg.Routes {                      // those that bring nodes first: the others have to fit in
		if r := &cfg.Routes[i]; r.Budget != nil && !known[r.Budget.root()] {
			known[r.Budget.root()] = true
			all = append(all, p.claimFaults(r)...)
			p.nodes.add(r.Budget, budgetOf(r.Name))
		}
	}
	for i := range cfg.Routes {
		if r := &cfg.Routes[i]; r.Budget == nil {
			all = append(all, p.claimFaults(r)...)
		}
	}
	return all
}

// claimFaults are what is wrong with the names of the nodes of one more route.
func (p *Poller) claimFaults(r *Route) []error {
	if r.Budget != nil {
		return p.nodes.faults(r.Budget, budgetOf(r.Name))
	}
	if err := p.nodes.routeFault(p.budget, r.Name, budgetOf(r.Name)); err != nil {
		return []error{err}
	}
	return nil
}
