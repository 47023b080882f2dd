//! Tests of what the two ways have in common, and of a server that is not what it should be.

use serde_json::json;

use super::*;

#[test]
fn values_of_a_query_are_escaped_and_absent_ones_left_out() {
    let query =
        [("status", Some(String::from("failed"))), ("since", None), ("x", Some(String::from("a b&c=é")))];
    assert_eq!(path("/v1/executions", &query), "/v1/executions?status=failed&x=a%20b%26c%3D%C3%A9");
    assert_eq!(path("/v1/executions", &[]), "/v1/executions");
    assert_eq!(escape("../a"), "..%2Fa");
}

#[test]
fn a_refusal_keeps_its_code_and_names_every_problem() {
    let body = json!({"error": {"code": "VALIDATION", "cause": "INVALID_WORKFLOW", "message": "2 problems", "details": {"problems": [
        {"path": "/steps/0/agentId", "message": "is missing", "hint": "name an agent", "code": "X"},
        {"path": "", "message": "is empty"},
    ]}}});
    let failure = refusal(StatusCode::UNPROCESSABLE_ENTITY, &body);
    assert_eq!((failure.code, failure.exit_code()), (Code::InvalidWorkflow, 2));
    assert_eq!(failure.lines, ["/steps/0/agentId: is missing (name an agent)", "/: is empty"]);
}

#[test]
fn words_of_the_face_and_bare_statuses_have_their_exit_codes() {
    let of = |status: u16, word: &str| {
        refusal(StatusCode::from_u16(status).unwrap(), &json!({"error": {"code": word, "message": "m"}}))
            .exit_code()
    };
    assert_eq!(of(400, "VALIDATION"), 2);
    assert_eq!(of(404, "NOT_FOUND"), 3);
    assert_eq!(of(403, "FORBIDDEN"), 4);
    assert_eq!(of(409, "IDEMPOTENCY_KEY_CONFLICT"), 5);
    assert_eq!(of(504, "TIMEOUT"), 6);
    assert_eq!(of(503, "SERVICE_UNAVAILABLE"), 7);
    for (status, exit) in [(400, 2), (401, 4), (404, 3), (412, 5), (504, 6), (502, 7), (500, 1)] {
        assert_eq!(of(status, "from a proxy"), exit, "{status}");
    }
    assert!(refusal(StatusCode::BAD_GATEWAY, &Value::Null).message.contains("502"));
}

/// Answers one connection with these bytes, whatever is asked.
async fn answering(bytes: &'static [u8]) -> String {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        let (mut socket, _) = listener.accept().await.unwrap();
        let mut head = [0; 4096];
        let _ = socket.read(&mut head).await.unwrap();
        socket.write_all(bytes).await.unwrap();
    });
    format!("http://{address}/")
}

#[tokio::test]
async fn an_answer_that_is_not_json_and_a_closed_port_are_told_apart() {
    let url = answering(b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\nconnection: close\r\n\r\nhello").await;
    let server = Reach::Server(Server::at(&url, None, None).unwrap());
    let failure = server.get("/v1/health").await.unwrap_err();
    assert!(failure.message.starts_with("the answer is not JSON"), "{failure:?}");

    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let closed = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let failure =
        Server::at(&closed, None, None).unwrap().send(Method::GET, "/", &[], None).await.unwrap_err();
    assert_eq!((failure.code, failure.exit_code()), (Code::Unavailable, 7));
    assert!(failure.message.contains(&closed), "{failure:?}");
}

#[tokio::test]
async fn an_empty_answer_is_nothing_and_a_refusal_is_a_reply() {
    let url = answering(b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\nx-error-code: NOT_FOUND\r\nconnection: close\r\n\r\n").await;
    let reply = Server::at(&url, Some("t"), None).unwrap().send(Method::GET, "/x", &[], None).await.unwrap();
    assert_eq!(
        (reply.status.as_u16(), &reply.body, reply.header("x-error-code")),
        (404, &Value::Null, Some("NOT_FOUND"))
    );
    assert_eq!(reply.accepted().unwrap_err().exit_code(), 3);
}

#[test]
fn an_address_needs_its_scheme() {
    let failure = Server::at("localhost:8088", None, None).err().unwrap();
    assert_eq!(failure.exit_code(), 2);
}
