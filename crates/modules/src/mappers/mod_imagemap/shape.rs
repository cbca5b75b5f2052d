//! Areas of an image.

/// The maximum number of vertices of an area (`MAXVERTS`).
pub(super) const VERTICES_MAX: usize = 100;

/// The vertices of the current line, which end with an x of -1. As in Apache, vertices of earlier
/// lines remain behind that.
pub(super) struct Vertices([[f64; 2]; VERTICES_MAX + 1]);

/// The x behind the last vertex.
const END: f64 = -1.0;

impl Vertices {
    pub fn new() -> Vertices {
        Vertices([[0.0; 2]; VERTICES_MAX + 1])
    }

    /// Takes the vertices of another line.
    pub fn set(&mut self, vertices: impl Iterator<Item = [f64; 2]>) {
        let mut count = 0;
        for (slot, vertex) in self.0.iter_mut().take(VERTICES_MAX).zip(vertices) {
            *slot = vertex;
            count += 1;
        }
        if let Some([x, _]) = self.0.get_mut(count) {
            *x = END;
        }
    }

    /// Whether there are none.
    #[allow(clippy::float_cmp)]
    pub fn is_empty(&self) -> bool {
        let [[x, _], ..] = self.0;
        x == END
    }

    /// Whether a point is in the rectangle of two opposite corners.
    pub fn rectangle_has(&self, [x, y]: [f64; 2]) -> bool {
        let [[x1, y1], [x2, y2], ..] = self.0;
        let is_between = |value: f64, a: f64, b: f64| value >= a.min(b) && value <= a.max(b);
        is_between(x, x1, x2) && is_between(y, y1, y2)
    }

    /// Whether a point is in the circle of a centre and a point on it.
    pub fn circle_has(&self, point: [f64; 2]) -> bool {
        let [centre, edge, ..] = self.0;
        distance_squared(centre, point) <= distance_squared(centre, edge)
    }

    /// Whether a point is in the polygon, or on its edge: a ray from it crosses the edges an odd
    /// number of times (`pointinpoly`).
    #[allow(clippy::float_cmp)]
    pub fn polygon_has(&self, [x, y]: [f64; 2]) -> bool {
        let corners = || self.0.iter().take(VERTICES_MAX).take_while(|vertex| vertex[0] != END);
        let next = corners().cycle().skip(1);
        let mut is_inside = false;
        for ([x1, y1], [x2, y2]) in corners().zip(next) {
            let side = (y - y1) * (x2 - x1) - (x - x1) * (y2 - y1);
            if (*y1 >= y) != (*y2 >= y) {
                is_inside ^= if y2 - y1 >= 0.0 { side >= 0.0 } else { side <= 0.0 };
            }
            let is_near =
                x1.min(*x2) <= x && x <= x1.max(*x2) && y1.min(*y2) <= y && y <= y1.max(*y2);
            if side == 0.0 && is_near {
                return true;
            }
        }
        is_inside
    }

    /// The square of the distance of the first vertex from a point.
    pub fn distance_squared(&self, point: [f64; 2]) -> f64 {
        let [first, ..] = self.0;
        distance_squared(first, point)
    }
}

fn distance_squared([x1, y1]: [f64; 2], [x2, y2]: [f64; 2]) -> f64 {
    (y1 - y2) * (y1 - y2) + (x1 - x2) * (x1 - x2)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(vertices: &[[f64; 2]]) -> Vertices {
        let mut all = Vertices::new();
        all.set(vertices.iter().copied());
        all
    }

    #[test]
    fn points_are_in_areas() {
        let rectangle = of(&[[10.0, 10.0], [0.0, 5.0]]);
        assert!(rectangle.rectangle_has([0.0, 7.0]) && !rectangle.rectangle_has([5.0, 4.0]));
        let circle = of(&[[0.0, 0.0], [3.0, 4.0]]);
        assert!(circle.circle_has([5.0, 0.0]) && !circle.circle_has([4.0, 4.0]));
        let triangle = of(&[[0.0, 0.0], [10.0, 0.0], [0.0, 10.0]]);
        assert!(triangle.polygon_has([2.0, 2.0]) && triangle.polygon_has([5.0, 5.0]));
        assert!(!triangle.polygon_has([6.0, 6.0]));
        assert!(of(&[]).is_empty() && !of(&[]).polygon_has([0.0, 0.0]));
        assert!(!of(&vec![[1.0, 1.0]; 500]).polygon_has([2.0, 2.0]));
    }
}
