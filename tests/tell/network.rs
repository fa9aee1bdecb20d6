//! The way to a server: proxies, TLS, IPv6.

use std::net::TcpListener;
use std::process::Command;

use super::harness::SECRET;
use super::support::certificates::Certificates;
use super::support::http_server::{Answer, Server};
use super::support::{Ended, Live, Sandbox, python, script};

/// What `alert test` says with this channel and these variables.
fn test(url: &str, variables: &[(&str, &str)]) -> Ended {
    let sandbox = Sandbox::new();
    let mut job = sandbox.gpuwatch(&["alert", "test", "--notify", "env:HOOK"]);
    for (name, value) in variables {
        job = job.env(name, value);
    }
    let ended = job.env("HOOK", url).run();
    let said = ended.out() + &ended.err();
    assert!(!said.contains(SECRET), "{said}");
    ended
}

const OK: &str = "notify-1 (webhook), test: ok\n";

#[test]
fn a_proxy_is_asked_where_one_is_set() {
    for name in ["http_proxy", "HTTP_PROXY", "ALL_PROXY"] {
        let proxy = Server::start(&[Answer::status(200)]);
        let at = proxy.url("").replace("http://", "http://user:t0ken@");
        let ended = test("http://hooks.example.test/t0ken", &[(name, &at)]);
        assert_eq!(ended.out(), OK, "{name}");
        let request = &proxy.requests()[0];
        assert_eq!(request.path, "http://hooks.example.test/t0ken");
        assert!(request.header("proxy-authorization").starts_with("Basic "));
    }
}

#[test]
fn through_a_proxy_tls_is_still_with_the_server() {
    let proxy = Server::start(&[Answer::status(502)]);
    let at = proxy.url("").replace("http://", "http://user:t0ken@");
    let ended = test("https://hooks.example.test/t0ken", &[("HTTPS_PROXY", &at)]);
    assert_eq!(ended.code(), Some(1));
    assert!(
        ended.out().contains("https://hooks.example.test/***: "),
        "{}",
        ended.out()
    );
    let requests = proxy.requests();
    assert_eq!(requests[0].method, "CONNECT");
    assert_eq!(
        requests[0].path, "hooks.example.test:443",
        "and no more is known to it"
    );
}

#[test]
fn no_proxy_and_this_machine_go_direct() {
    let proxy = Server::start(&[Answer::status(200)]);
    let at = proxy.url("");
    let ended = test(
        "http://hooks.example.test/t0ken",
        &[
            ("HTTP_PROXY", &at),
            ("NO_PROXY", "other.test,.example.test"),
        ],
    );
    assert!(
        ended.out().contains("its name can't be resolved"),
        "{}",
        ended.out()
    );
    let server = Server::start(&[Answer::status(200)]);
    for host in ["127.0.0.1", "localhost"] {
        let url = server.url("/t0ken").replace("127.0.0.1", host);
        let ended = test(&url, &[("HTTP_PROXY", &at), ("ALL_PROXY", &at)]);
        assert_eq!(ended.out(), OK, "{host}");
    }
    assert_eq!(server.requests().len(), 2);
    assert!(proxy.requests().is_empty());
}

#[test]
fn an_address_of_ipv6() {
    let Ok(listener) = TcpListener::bind("[::1]:0") else {
        return eprintln!("not tried: this machine has no IPv6");
    };
    let server = Server::on(&listener, &[Answer::status(200)]);
    let url = server.url("/t0ken");
    assert!(url.starts_with("http://[::1]:"));
    assert_eq!(
        test(&url, &[("HTTP_PROXY", "http://127.0.0.1:1")]).out(),
        OK
    );
    server.answer(Answer::status(404));
    let said = test(&url, &[]).out();
    assert!(said.contains("http://[::1]/*** answered 404"), "{said}");
}

fn https(files: &Certificates, location: &[&str]) -> (Live, String) {
    let program = script("https_server.py");
    let words = [program, files.certificate(), files.key()];
    let live = Live::in_pipes(Command::new(python()).args(words).args(location));
    live.wait_for_out("\n");
    let port = live.out_so_far().trim().to_owned();
    (live, port)
}

#[test]
fn tls_is_with_whom_somebody_vouches_for() {
    let files = Certificates::new();
    let (live, port) = https(&files, &[]);
    let (url, trusted) = (format!("https://127.0.0.1:{port}/t0ken"), files.authority());
    assert_eq!(test(&url, &[("SSL_CERT_FILE", &trusted)]).out(), OK);
    let untrusted = "its certificate can't be trusted, or TLS failed";
    let said = test(&url, &[]).out();
    assert!(
        said.contains(untrusted) && said.contains("SSL_CERT_FILE"),
        "{said}"
    );
    // Vouched for, and as somebody else.
    let other = url.replace("127.0.0.1", "127.0.0.2");
    let said = test(&other, &[("SSL_CERT_FILE", &trusted)]).out();
    assert!(said.contains(untrusted), "{said}");
    let out = live.out_so_far();
    assert_eq!(
        out,
        format!("{port}\n/t0ken\n"),
        "nothing was sent to the others"
    );
    // No TLS at all.
    let plain = Server::start(&[Answer::status(200)]);
    let said = test(&plain.url("/t0ken").replace("http:", "https:"), &[]).out();
    assert!(said.contains("failed: https://127.0.0.1/***: "), "{said}");
    assert!(plain.requests().is_empty());
}

#[test]
fn a_redirect_never_leads_out_of_tls() {
    let files = Certificates::new();
    let plain = Server::start(&[Answer::status(200)]);
    let (_live, port) = https(&files, &[&plain.url("/t0ken")]);
    let url = format!("https://127.0.0.1:{port}/t0ken");
    let said = test(&url, &[("SSL_CERT_FILE", &files.authority())]).out();
    assert!(
        said.contains("redirects to nowhere that can be used"),
        "{said}"
    );
    assert!(plain.requests().is_empty());
}
