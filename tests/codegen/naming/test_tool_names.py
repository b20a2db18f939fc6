from __future__ import annotations

from mcpfactory_codegen.ir import ApiOperation
from mcpfactory_codegen.naming.tools import name_tools
from tests.subtest_table import parametrize_subtests


def name(method: str, path: str, operation_id: str = "", summary: str = "") -> str:
    operation = ApiOperation(method, path, "", operation_id=operation_id, summary=summary)
    return name_tools([operation], {})[operation.key]


def names(*keys: str, ids: tuple[str, ...] = ()) -> list[str]:
    split = [key.split(" ") for key in keys]
    operations = [
        ApiOperation(method, path, "", operation_id=ids[index] if ids else "")
        for index, (method, path) in enumerate(split)
    ]
    named = name_tools(operations, {})
    return [named[key] for key in keys]


@parametrize_subtests(
    "method, path, operation_id, expected",
    [
        ("GET", "/", "meta/root", "meta_root"),
        ("GET", "/pets", "listPets", "list_pets"),
        ("GET", "/me/messages", "users.GetMail", "users_get_mail"),
        ("GET", "/x", "getHTTPStatus2", "get_http_status2"),
        ("GET", "/chat.postMessage", "chat_postMessage", "chat_post_message"),
        ("GET", "/user/books", "getUserBooks", "get_user_books"),
        ("GET", "/books", "BooksController_findAll", "books_find_all"),
        ("DELETE", "/{Bucket}", "DeleteBucket", "delete_bucket"),
        ("PUT", "/{Bucket}#replication", "PutBucketReplication", "put_bucket_replication"),
        ("GET", "/_component_template", "cluster-get-component-template", "cluster_get_component_template"),
        ("GET", "/colors", "calendar.colors.get", "calendar_colors_get"),
        ("GET", "/_alias", "indices-get-alias", "indices_get_alias"),
        ("GET", "/api/v1/rc/{name}", "readReplicationController", "read_replication_controller"),
        ("POST", "/#Action=TerminateInstances", "POST_TerminateInstances", "terminate_instances"),
        ("POST", "/#X-Amz-Target=Timestream.Query", "Query", "query"),
        ("GET", "/books/{id}", "getBookUsingGET_1", "get_book"),
        ("GET", "/x", "listOAuth2Clients", "list_oauth2_clients"),
        ("GET", "/x", "getUserIDs", "get_user_ids"),
        ("POST", "/x", "pOSTOrder", "post_order"),
        ("GET", "/x", "get-user's-books", "get_users_books"),
        ("GET", "/x", "getStoresIdProducts", "get_stores_id_products"),
        ("GET", "/x", "listIdPUsers", "list_idp_users"),
        ("POST", "/v2/chat", "chatv2", "chatv2"),
        ("GET", "/x", "getIDToken", "get_id_token"),
        ("GET", "/getnextevents", "getnextevents", "getnextevents"),
        ("GET", "/feed", "deadbeef", "deadbeef"),
        ("GET", "/books", "books", "books"),
    ],
)
def test_an_operation_id_that_says_something_is_kept(method: str, path: str, operation_id: str, expected: str) -> None:
    assert name(method, path, operation_id) == expected


@parametrize_subtests(
    "method, path, operation_id, expected",
    [
        ("GET", "/items/{item_id}", "read_item_items__item_id__get", "read_item"),
        ("POST", "/v1/payment_intents/{intent}/cancel", "PostPaymentIntentsIntentCancel", "cancel_payment_intent"),
        ("GET", "/books/{id}", "get_books_id", "get_book"),
        ("GET", "/books", "list", "list_books"),
        ("GET", "/books", "get", "list_books"),
        ("GET", "/books", "operation_17", "list_books"),
        ("GET", "/books", "9f86d081884c7d65", "list_books"),
        ("GET", "/books", "本", "list_books"),
        ("GET", "/health", "health_health_get", "health"),
        ("GET", "/books/openapi.json", "books#/books/openapi.json", "get_book_openapi"),
        ("GET", "/api/v1/books", "v1.books.index", "books_index"),
        ("GET", "/folders/{folder_id}/items", "get_folders_id_items", "list_folder_items"),
        ("PUT", "/events/{eventId}", "put-/events/{eventId}_replace", "replace_event"),
        ("PUT", "/files/{id}#add_shared_link", "put_files_id#add_shared_link", "add_file_shared_link"),
        (
            "POST",
            "/v1/test_helpers/cards/{card}/deliver",
            "PostTestHelpersCardsCardDeliver",
            "deliver_test_helper_card",
        ),
    ],
)
def test_an_operation_id_made_by_a_machine_gives_way_to_the_path(
    method: str, path: str, operation_id: str, expected: str
) -> None:
    assert name(method, path, operation_id) == expected


@parametrize_subtests(
    "key, expected",
    [
        ("GET /books", "list_books"),
        ("POST /books", "create_book"),
        ("GET /books/{id}", "get_book"),
        ("PUT /books/{id}", "update_book"),
        ("PATCH /books/{id}", "update_book"),
        ("DELETE /books/{id}", "delete_book"),
        ("GET /users/{user}/books", "list_user_books"),
        ("GET /users/{user}/books/{id}", "get_user_book"),
        ("POST /books/{id}/publish", "publish_book"),
        ("GET /books/search", "search_book"),
        ("GET /account", "get_account"),
        ("GET /categories/{id}", "get_category"),
        ("GET /v2/api/status", "get_status"),
        ("HEAD /books/{id}", "check_books"),
        ("QUERY /books", "query_books"),
        ("GET /", "get_root"),
        ("GET /{id}", "get_item"),
        ("GET /orders.json", "list_orders"),
        ("GET /aliases/{id}", "get_alias"),
        ("GET /statuses/{id}", "get_status"),
        ("PUT /hooks/:id", "update_hook"),
        ("POST /messages/{id}/mark-as-read", "mark_message_as_read"),
        ("GET /a/{x}/b/{y}/c/{z}/d", "get_a_b_c_d"),
        ("POST /books/create", "create_book"),
        ("POST /books/update/{id}", "update_book"),
        ("POST /books/{id}/update-pages", "update_book_pages"),
        ("DELETE /books/{id}/delete-page", "delete_book_page"),
        ("POST /update/{id}", "update_update"),
    ],
)
def test_without_an_operation_id_method_and_path_make_verb_and_noun(key: str, expected: str) -> None:
    assert names(key) == [expected]


@parametrize_subtests(
    "key, summary, expected",
    [
        ("POST /paymentMethods", "Get a list of available payment methods", "list_payment_methods"),
        ("POST /node", "Shows the transactions of an address", "get_node"),
        ("POST /users/{id}/relationship", "Modify the relationship of two users", "update_user_relationship"),
        ("POST /permission/apps/{id}", "Adds the permission", "add_permission_app"),
        ("PUT /books/{id}", "Create or update a book", "update_book"),
        ("POST /orders/{id}/delivery", "Ships an order", "ship_order_delivery"),
        ("POST /books", "Adds a book", "create_book"),
        ("GET /orders/{id}", "Request details", "get_order"),
        ("POST /files/{id}/content", "Upload file version", "upload_file_content"),
        ("GET /corridor", "[USES 20 UNITS] Infer a country", "infer_corridor"),
        ("POST /senders/resend/{id}", "Resend the request", "resend_sender"),
    ],
)
def test_a_verb_is_never_invented_against_the_summary(key: str, summary: str, expected: str) -> None:
    method, path = key.split()
    assert name(method, path, summary=summary) == expected


def test_operations_that_would_share_a_name_tell_themselves_apart_by_their_own_words() -> None:
    assert names("PUT /books/{id}", "PATCH /books/{id}") == ["replace_book", "patch_book"]
    assert names("GET /a/x", "GET /b/x", ids=("findIt", "find-it")) == ["find_it_a_x", "find_it_b_x"]
    assert names("GET /books/{isbn}", "GET /books/{id}", ids=("book", "book")) == ["book_by_isbn", "book_by_id"]
    assert names("GET /books", "DELETE /books", ids=("getBooks", "getBooks")) == ["get_books", "delete_books"]
    assert names("GET /", "GET /api") == ["get_root", "get_root_api"]
    assert names("GET /a", "POST /a", ids=("doThing", "doThing")) == ["do_thing_a_via_get", "do_thing_a_via_post"]


def test_where_words_end_a_digest_of_method_and_path_goes_on() -> None:
    first, second = names("GET /本", "GET /語")
    assert first != second
    assert first.startswith("get_root_")


GOOGLE = "aiplatform.projects.locations."
SETS = "groups.sites.termStore.sets.parentGroup.sets."


@parametrize_subtests(
    "ids, expected",
    [
        (  # what most operations have goes first
            [GOOGLE + word for word in ("featurestores.entityTypes.features.batchCreate", *"abcdefg")],
            ["locations_featurestores_entity_types_features_batch_create"],
        ),
        (  # a phrase that is there twice stays once
            ["CustomerCustomPropertySelectionItems_PostCustomerCustomPropertySelectionItem"],
            ["post_customer_custom_property_selection_item"],
        ),
        (
            ["GetPaymentInformationSepaSeparatePaymentByPaymentInformationSepaSeparatePaymentId"],
            ["get_payment_information_sepa_separate_payment_by_id"],
        ),
        (  # little words, and a word that is there twice
            ["enterprise-admin/add-org-access-to-self-hosted-runner-group-in-enterprise"],
            ["admin_add_org_access_self_hosted_runner_group_enterprise"],
        ),
        (  # little words, and a word that is there twice
            ["packages/list-docker-migration-conflicting-packages-for-authenticated-user"],
            ["list_docker_migration_conflicting_packages_authenticated_user"],
        ),
        (  # usual short forms; siblings keep what tells them apart
            [f"replaceAdmissionregistrationV1{kind}WebhookConfiguration" for kind in ("Validating", "Mutating")],
            [
                "replace_admissionregistration_v1_validating_webhook_config",
                "replace_admissionregistration_v1_mutating_webhook_configuration",
            ],
        ),
        (
            [f"{SETS}children.children.relations.Get{side}Term" for side in ("To", "From")],
            [
                "store_sets_parent_group_sets_children_relations_get_to_term",
                "store_sets_parent_group_sets_children_relations_get_from_term",
            ],
        ),
    ],
)
def test_a_long_name_loses_what_tells_least(ids: list[str], expected: list[str]) -> None:
    keys = [f"GET /{number}" for number in range(len(ids))]
    assert names(*keys, ids=tuple(ids))[: len(expected)] == expected


def test_a_long_name_gets_a_digest_when_there_is_no_other_way() -> None:
    assert name("GET", "/x", "a" * 90) == "a" * 55 + "_541a2d0d"


def test_a_pinned_name_stays_and_the_other_gives_way() -> None:
    operations = [
        ApiOperation("GET", "/a/x", "", operation_id="findIt"),
        ApiOperation("GET", "/b/x", "", operation_id="findIt"),
    ]
    named = name_tools(operations, {"GET /b/x": "find_it"})
    assert named == {"GET /b/x": "find_it", "GET /a/x": "find_it_a_x"}
