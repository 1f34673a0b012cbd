"""A SOAP 1.1 service made with spyne, which serves its own WSDL. Prints its port."""

import logging
from wsgiref.simple_server import WSGIRequestHandler, make_server

from spyne import (
    Application,
    Array,
    Boolean,
    ByteArray,
    ComplexModel,
    DateTime,
    Decimal,
    Fault,
    Integer,
    ServiceBase,
    Unicode,
    rpc,
)
from spyne.protocol.soap import Soap11
from spyne.server.wsgi import WsgiApplication

NAMESPACE = "urn:ringway:shop"


class Line(ComplexModel):
    __namespace__ = NAMESPACE
    sku = Unicode(min_occurs=1, nillable=False)
    amount = Integer
    price = Decimal


class Order(ComplexModel):
    __namespace__ = NAMESPACE
    number = Integer
    placed = DateTime
    urgent = Boolean
    lines = Array(Line)
    note = Unicode


class Shop(ServiceBase):
    @rpc(Unicode, Integer, _returns=Array(Unicode))
    def say_hello(ctx, name, times):
        return [f"Hello, {name}"] * times

    @rpc(Order, _returns=Order)
    def place(ctx, order):
        if order is not None:
            order.number = 12345678901234567890
        return order

    @rpc(Array(Line), _returns=Decimal)
    def total(ctx, lines):
        return sum((line.price * line.amount for line in lines or []), 0)

    @rpc(ByteArray, _returns=ByteArray)
    def reverse(ctx, data):
        return [b"".join(data)[::-1]]

    @rpc(Unicode, _returns=Unicode)
    def fail(ctx, what):
        raise Fault("Client.NoSuchThing", f"no such {what}", detail={"thing": what})


class Quiet(WSGIRequestHandler):
    def log_message(self, *_):
        pass


def main():
    logging.disable(logging.WARNING)
    application = Application(
        [Shop], NAMESPACE, in_protocol=Soap11(validator="lxml"), out_protocol=Soap11()
    )
    server = make_server("127.0.0.1", 0, WsgiApplication(application), handler_class=Quiet)
    print(server.server_port, flush=True)
    server.serve_forever()


main()
