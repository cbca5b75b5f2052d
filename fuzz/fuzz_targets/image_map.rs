//! Image maps (mod_imagemap): the vertices of a line, and the areas that they make.
#![no_main]

use libfuzzer_sys::fuzz_target;

// By their source: the crate around them has no part in this, and would be instrumented too.
#[path = "../../crates/modules/src/mappers/mod_imagemap/coordinates.rs"]
mod coordinates;
#[path = "../../crates/modules/src/mappers/mod_imagemap/shape.rs"]
mod shape;

fuzz_target!(|input: &[u8]| {
    let point = coordinates::point(Some(input)).unwrap_or([1.0, 1.0]);
    let mut vertices = shape::Vertices::new();
    for line in input.split(|byte| *byte == b'\n') {
        let mut rest = line;
        vertices.set(std::iter::from_fn(|| {
            let before = rest.len();
            let vertex = coordinates::vertex(&mut rest);
            assert!(vertex.is_none() || rest.len() < before);
            vertex
        }));
        if !vertices.is_empty() {
            vertices.rectangle_has(point);
            vertices.circle_has(point);
            vertices.polygon_has(point);
            vertices.distance_squared(point);
        }
    }
});
