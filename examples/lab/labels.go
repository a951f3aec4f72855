package main

import (
	"image/color"
	"math"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// labels writes names beside points, so that no name lies on another one, on a
// point, or on a curve. One for which there is no room is left out: the table
// has it.
type labels struct {
	avoid [][]point // curves
	all   []label
}

type label struct {
	point
	color color.Color
}

func (l *labels) add(points []point, c color.Color) {
	for _, p := range points {
		l.all = append(l.all, label{p, c})
	}
}

// Plot implements plot.Plotter.
func (l *labels) Plot(c draw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(&c)
	at := func(q point) vg.Point {
		return vg.Point{X: x(log(q.looks)), Y: y(log(q.late))}
	}
	var taken, texts []vg.Rectangle
	for _, q := range l.all {
		taken = append(taken, around(at(q.point), 3))
	}
	for _, curve := range l.avoid {
		for i := 1; i < len(curve); i++ {
			taken = append(taken, along(at(curve[i-1]), at(curve[i]))...)
		}
	}
	style := draw.TextStyle{Font: p.X.Tick.Label.Font, Handler: plot.DefaultTextHandler, YAlign: text.YCenter}
	style.Font.Size = 7
	for _, q := range l.all {
		style.Color = q.color
		w, h := style.Width(q.name)+3, vg.Length(8)
		box, ok := place(at(q.point), w, h, taken, append(others(l.all, at, q.point), texts...), c.Rectangle)
		if !ok {
			continue
		}
		taken, texts = append(taken, box), append(texts, box)
		if from, to, far := lead(at(q.point), box); far {
			c.StrokeLine2(draw.LineStyle{Color: q.color, Width: vg.Points(0.3)}, from.X, from.Y, to.X, to.Y)
			taken = append(taken, along(from, to)...)
		}
		c.FillText(style, vg.Point{X: box.Min.X, Y: (box.Min.Y + box.Max.Y) / 2}, q.name)
	}
}

// others covers the points that are not right beside one.
func others(all []label, at func(point) vg.Point, p point) []vg.Rectangle {
	var boxes []vg.Rectangle
	own := []vg.Rectangle{around(at(p), 4)}
	for _, q := range all {
		if box := around(at(q.point), 2); free(box, own) {
			boxes = append(boxes, box)
		}
	}
	return boxes
}

// place finds the room for a text near a point, the nearest first. Neither the
// text lies on anything, nor the line that leads to it on what it may not
// cross: other texts and points.
func place(at vg.Point, w, h vg.Length, taken, uncrossed []vg.Rectangle, within vg.Rectangle) (vg.Rectangle, bool) {
	const directions = 24
	for far := 5.0; far < 90; far *= 1.25 {
		for k := range directions {
			angle := 2 * math.Pi * float64(k) / directions
			dx, dy := math.Cos(angle), math.Sin(angle)
			// The box touches the circle with the side that looks inward.
			corner := vg.Point{
				X: at.X + vg.Length(far*dx) - w*vg.Length(1-dx)/2,
				Y: at.Y + vg.Length(far*dy) - h*vg.Length(1-dy)/2,
			}
			box := vg.Rectangle{Min: corner, Max: vg.Point{X: corner.X + w, Y: corner.Y + h}}
			if !inside(box, within) || !free(box, taken) {
				continue
			}
			if from, to, far := lead(at, box); !far || !slices.ContainsFunc(along(from, to), func(r vg.Rectangle) bool { return !free(r, uncrossed) }) {
				return box, true
			}
		}
	}
	return vg.Rectangle{}, false
}

// lead gives the line from a point to a text that is not right beside it.
func lead(at vg.Point, box vg.Rectangle) (from, to vg.Point, far bool) {
	to = vg.Point{X: min(max(at.X, box.Min.X), box.Max.X), Y: min(max(at.Y, box.Min.Y), box.Max.Y)}
	return at, to, math.Hypot(float64(to.X-at.X), float64(to.Y-at.Y)) >= 9
}

func around(p vg.Point, r vg.Length) vg.Rectangle {
	return vg.Rectangle{Min: vg.Point{X: p.X - r, Y: p.Y - r}, Max: vg.Point{X: p.X + r, Y: p.Y + r}}
}

// along covers a line with small boxes.
func along(a, b vg.Point) []vg.Rectangle {
	n := int(math.Hypot(float64(b.X-a.X), float64(b.Y-a.Y))/3) + 1
	all := make([]vg.Rectangle, n)
	for i := range all {
		t := vg.Length(i) / vg.Length(n)
		all[i] = around(vg.Point{X: a.X + t*(b.X-a.X), Y: a.Y + t*(b.Y-a.Y)}, 1.5)
	}
	return all
}

func inside(a, b vg.Rectangle) bool {
	return a.Min.X >= b.Min.X && a.Max.X <= b.Max.X && a.Min.Y >= b.Min.Y && a.Max.Y <= b.Max.Y
}

func free(box vg.Rectangle, taken []vg.Rectangle) bool {
	for _, t := range taken {
		if box.Min.X < t.Max.X && t.Min.X < box.Max.X && box.Min.Y < t.Max.Y && t.Min.Y < box.Max.Y {
			return false
		}
	}
	return true
}
