//! Clients that go away in the middle.

use crate::site::Site;

#[test]
fn what_a_client_left_is_not_seen_by_the_next() {
    let mut site = Site::new("gone");
    site.write("htdocs/one.txt", "one");
    site.write("htdocs/two.txt", "two");
    site.start();
    for _ in 0..4 {
        assert_eq!(site.client().get("/one.txt").unwrap().text(), "one");
    }
    for _ in 0..20 {
        let mut gone = site.client();
        gone.send(&b"GET /one.txt HTTP/1.1\r\nHost: gone\r\n\r\n".repeat(300)).unwrap();
        // Answers that nobody has read make the kernel send a reset.
        drop(gone);
    }
    for _ in 0..20 {
        assert_eq!(site.client().get("/two.txt").unwrap().text(), "two");
    }
}
