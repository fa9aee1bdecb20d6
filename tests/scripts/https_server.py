"""A server with TLS that takes every POST, or redirects it.

    https_server.py CERTIFICATE KEY [LOCATION]

It prints its port, and then the path of each request.
"""

import ssl
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

certificate, key, *location = sys.argv[1:]


class Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        print(self.path, flush=True)
        self.send_response(307 if location else 200)
        for to in location:
            self.send_header("location", to)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(certificate, key)
server = ThreadingHTTPServer(("0.0.0.0", 0), Handler)
print(server.server_port, flush=True)
server.socket = context.wrap_socket(server.socket, server_side=True)
server.serve_forever()
