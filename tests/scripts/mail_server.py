"""A real mail server: aiosmtpd, with STARTTLS, TLS from the start or neither, and a login.

    mail_server.py starttls|tls|plain CERTIFICATE KEY

It prints its port, and then a JSON object a line: what each client tried to log in with, and each
message as Python's email library reads it.
"""

import asyncio
import email
import email.policy
import json
import ssl
import sys

from aiosmtpd.smtp import SMTP, AuthResult


def say(**said: object) -> None:
    print(json.dumps(said), flush=True)


class Handler:
    async def handle_DATA(self, server, session, envelope):
        message = email.message_from_bytes(envelope.content, policy=email.policy.default)
        defects = [str(d) for part in message.walk() for d in part.defects]
        say(
            mail=message["Subject"],
            sender=envelope.mail_from,
            receivers=envelope.rcpt_tos,
            headers=[name for name, _ in message.items()],
            id=message["Message-ID"],
            type=message.get_content_type(),
            parts=[[p.get_content_type(), p.get_content()] for p in message.iter_parts()],
            defects=defects,
            encrypted=session.ssl is not None or how == "tls",
            ascii=envelope.content.split(b"\r\n\r\n")[0].isascii(),
        )
        return "250 kept"


def authenticate(server, session, envelope, mechanism, data):
    encrypted = session.ssl is not None or how == "tls"
    password = data.password.decode()
    say(login=data.login.decode(), encrypted=encrypted)
    good = (data.login, data.password) == (b"me", b"t0ken")
    # A server that repeats what it was sent: its words must go nowhere.
    return AuthResult(
        success=good, handled=False, message=None if good else f"535 5.7.8 {password} is wrong"
    )


how, certificate, key = sys.argv[1:]
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(certificate, key)


def session():
    return SMTP(
        Handler(),
        tls_context=context if how == "starttls" else None,
        require_starttls=how == "starttls",
        authenticator=authenticate,
        auth_required=True,
        auth_require_tls=how == "starttls",
        hostname="mail.test",
    )


async def serve() -> None:
    loop = asyncio.get_running_loop()
    # Both families: a mapped address isn't this machine to whoever looks at it.
    server = await loop.create_server(session, "127.0.0.1", 0, ssl=context if how == "tls" else None)
    say(port=server.sockets[0].getsockname()[1])
    await server.serve_forever()


asyncio.run(serve())
