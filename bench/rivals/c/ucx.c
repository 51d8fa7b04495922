/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * Echo over UCX in shared memory: one worker a side, polled without pause.
 *
 * Variants: `am` (active messages) and `tag` (tagged messages, the next receive posted before the wait for it). Elements of UCX's queue
 * hold 100 bytes inline, unless its own variables say otherwise. The address is the server's worker address in hexadecimal digits; the client's goes to the server in
 * a first message.
 */
#include "start.h"

#include "ucx.h"

#define ECHO_ADDRESS_BYTES 8192
#define MESSAGE_BYTES 4096
#define AM_ECHO 1
#define AM_HELLO 2
#define TAG_ECHO 1
#define TAG_HELLO 2

struct rival {
	struct side side;
	bool tagged;
	bool serves;
	/* The last message that arrived, and how many did. */
	unsigned char message[MESSAGE_BYTES];
	uint64_t arrived;
	/* A receive that was posted and not waited for yet, of `tag`. */
	void *posted;
};

static ucs_status_ptr_t start_send(struct rival *rival, unsigned kind, const void *from, size_t bytes)
{
	ucp_request_param_t param = { .op_attr_mask = 0 };

	if (rival->tagged)
		return ucp_tag_send_nbx(rival->side.peer, from, bytes, kind, &param);
	param.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
	param.flags = UCP_AM_SEND_FLAG_EAGER;
	return ucp_am_send_nbx(rival->side.peer, kind, NULL, 0, from, bytes, &param);
}

static ucs_status_t hello_arrived(void *arg, const void *header, size_t header_bytes, void *data, size_t bytes,
				  const ucp_am_recv_param_t *param)
{
	(void)header, (void)header_bytes, (void)bytes, (void)param;
	connect_to(&((struct rival *)arg)->side, data);
	return UCS_OK;
}

static ucs_status_t echo_arrived(void *arg, const void *header, size_t header_bytes, void *data, size_t bytes,
				 const ucp_am_recv_param_t *param)
{
	struct rival *rival = arg;

	(void)header, (void)header_bytes;
	if (param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV || bytes > MESSAGE_BYTES)
		die("a message of %zu bytes came by rendezvous", bytes);
	memcpy(rival->message, data, bytes);
	rival->arrived++;
	return UCS_OK;
}

static void handle(struct rival *rival, unsigned id, ucp_am_recv_callback_t callback)
{
	ucp_am_handler_param_t param = {
		.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_FLAGS |
			      UCP_AM_HANDLER_PARAM_FIELD_CB | UCP_AM_HANDLER_PARAM_FIELD_ARG,
		.id = id,
		.flags = UCP_AM_FLAG_WHOLE_MSG,
		.cb = callback,
		.arg = rival,
	};
	check(ucp_worker_set_am_recv_handler(rival->side.worker, &param), "cannot set a handler");
}

static void open_side(struct rival *rival, const char *variant)
{
	rival->tagged = strcmp(variant, "tag") == 0;
	if (!rival->tagged && strcmp(variant, "am") != 0)
		die("no variant %s: am, tag", variant);
	setenv("UCX_POSIX_FIFO_ELEM_SIZE", "192", 0);
	open_worker(&rival->side, rival->tagged ? UCP_FEATURE_TAG : UCP_FEATURE_AM);
	if (!rival->tagged) {
		handle(rival, AM_ECHO, echo_arrived);
		handle(rival, AM_HELLO, hello_arrived);
	}
}

static void open_server(struct rival *rival, const char *variant, char *address)
{
	ucp_address_t *own;
	size_t bytes;

	open_side(rival, variant);
	rival->serves = true;
	check(ucp_worker_get_address(rival->side.worker, &own, &bytes), "cannot tell the address");
	if (2 * bytes >= ECHO_ADDRESS_BYTES)
		die("an address of %zu bytes", bytes);
	for (size_t i = 0; i < bytes; i++)
		sprintf(address + 2 * i, "%02x", ((unsigned char *)own)[i]);
	ucp_worker_release_address(rival->side.worker, own);
}

static void open_client(struct rival *rival, const char *variant, const char *address)
{
	static unsigned char server[ECHO_ADDRESS_BYTES / 2];
	ucp_address_t *own;
	size_t bytes;

	open_side(rival, variant);
	for (size_t i = 0; i < sizeof(server) && sscanf(address + 2 * i, "%2hhx", &server[i]) == 1; i++)
		;
	connect_to(&rival->side, server);
	check(ucp_worker_get_address(rival->side.worker, &own, &bytes), "cannot tell the address");
	finish(&rival->side, start_send(rival, rival->tagged ? TAG_HELLO : AM_HELLO, own, bytes), "cannot say hello");
	ucp_worker_release_address(rival->side.worker, own);
}

static void *post(struct rival *rival, ucp_tag_t tag)
{
	ucp_request_param_t param = { .op_attr_mask = UCP_OP_ATTR_FLAG_NO_IMM_CMPL };
	void *request = ucp_tag_recv_nbx(rival->side.worker, rival->message, MESSAGE_BYTES, tag, ~(ucp_tag_t)0, &param);

	if (UCS_PTR_IS_ERR(request))
		die("cannot post a receive: %s", ucs_status_string(UCS_PTR_STATUS(request)));
	return request;
}

/* Waits for the next message; it is in `message` then. */
static void receive(struct rival *rival, uint64_t number)
{
	if (rival->tagged) {
		void *request = rival->posted ? rival->posted : post(rival, TAG_ECHO);
		rival->posted = NULL;
		finish(&rival->side, request, "cannot receive");
		return;
	}
	while (rival->arrived < number)
		ucp_worker_progress(rival->side.worker);
}

static void begin(struct rival *rival, size_t bytes)
{
	(void)bytes;
	if (!rival->serves)
		return;
	if (rival->tagged && !rival->side.peer) {
		finish(&rival->side, post(rival, TAG_HELLO), "nobody says hello");
		connect_to(&rival->side, rival->message);
	}
	if (rival->tagged && !rival->posted)
		rival->posted = post(rival, TAG_ECHO);
	while (!rival->side.peer)
		ucp_worker_progress(rival->side.worker);
}

static void trip(struct rival *rival, const unsigned char *request, unsigned char *answer, size_t bytes)
{
	uint64_t number = rival->arrived + 1;

	if (rival->tagged)
		rival->posted = post(rival, TAG_ECHO);
	finish(&rival->side, start_send(rival, 1, request, bytes), "cannot send");
	receive(rival, number);
	memcpy(answer, rival->message, bytes);
}

static void answer_one(struct rival *rival, size_t bytes)
{
	static uint64_t answered;

	receive(rival, ++answered);
	finish(&rival->side, start_send(rival, 1, rival->message, bytes), "cannot send");
	if (rival->tagged)
		rival->posted = post(rival, TAG_ECHO);
}

static void close_side(struct rival *rival)
{
	if (rival->posted) {
		ucp_request_cancel(rival->side.worker, rival->posted);
		while (ucp_request_check_status(rival->posted) == UCS_INPROGRESS)
			ucp_worker_progress(rival->side.worker);
		ucp_request_free(rival->posted);
	}
	close_worker(&rival->side);
}

#include "echo.h"
